//! A machine for the laboratory kernel (`tests/powerlab/`): what is written on its command
//! line, and the CPUs that the VM must have.

use std::fmt::Write;

use anyhow::{Result, ensure};

use super::costs::CostsSpec;
use super::{Clock, IdleGovernor, IdleState, Machine};
use crate::power::Governor;

/// What things cost in the laboratory: there a nanosecond of the fastest CPU is an instruction, and
/// what the kernel executes for one run of a task, from its timer's interrupt to its next sleep, was
/// fitted to the non-idle time of `tiny` in packing on chromebook2, which is 2,000 such runs a second.
const LAB_COSTS: CostsSpec = CostsSpec {
    hz: 250,
    switch_us: 0.0,
    switch_work_us: 5.0,
    wake_us: 0.0,
    migrate_us: 0.0,
    migrate_far_us: 0.0,
    refill_us_per_mib: 0.0,
    idle_us: 0.0,
    ipi_us: 0.0,
    timer_jitter_us: 0.0,
    irq_us: 0.0,
    far_data_pct: 100,
    freq_change_us: 0.0,
    freq_ramp_us: 0.0,
    freq_change_uj: 0.0,
};

/// What `scripts/vm --machine` asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Lab {
    /// QEMU's `-smp`, without the number of CPUs.
    pub topology: String,
    /// For the kernel's command line.
    pub parameters: String,
}

fn uw(mw: f64) -> u64 {
    (mw * 1e3).round() as u64
}

/// `NAME+RESIDENCY_NS+EXIT_NS+UW,..`
fn states(states: &[IdleState]) -> String {
    let ns = |us: f64| (us * 1e3).round() as u64;
    let state = |state: &IdleState| {
        let (residency, exit) = (ns(state.residency_us), ns(state.exit_us));
        format!("{}+{residency}+{exit}+{}", state.name, uw(state.mw))
    };
    states.iter().map(state).collect::<Vec<_>>().join(",")
}

impl Machine {
    /// Fails with a sentence if it has no power to model, or no VM is like it.
    pub fn lab(&self) -> Result<Lab> {
        ensure!(
            self.core.values().all(|core| !core.idle.is_empty() && !core.opps.is_empty()),
            "{} says nothing of the power of its cores",
            self.name
        );
        self.lab_costs()?;
        Ok(Lab { topology: self.lab_topology()?, parameters: self.lab_parameters() })
    }

    /// The machine as the laboratory has it: its own power, and what things cost there.
    pub fn in_laboratory(self) -> Self {
        Machine { costs: LAB_COSTS, ..self }
    }

    /// There time passes only while instructions are executed, and what has no power of its own takes
    /// nothing: what else the file says would be left out without a word.
    fn lab_costs(&self) -> Result<()> {
        let caches = self.llc.iter().map(|llc| &llc.idle);
        let mut states = self.core.values().map(|core| &core.idle).chain(caches).flatten();
        let entered = states.any(|state| state.enter_uj > 0.0)
            || self.package.idle.iter().any(|state| state.enter_uj > 0.0);
        let turbo = self.core.values().any(|core| !core.turbo.is_empty());
        for (is_there, what) in [
            (turbo, "limits of turbo"),
            (entered, "energy of entering idle states"),
            (self.costs.costs_to_change_freq(), "costs of a change of frequency"),
            (!self.interrupt.is_empty(), "interrupts that wake no task"),
        ] {
            ensure!(!is_there, "{}: the laboratory has no {what}", self.name);
        }
        Ok(())
    }

    /// QEMU's machines are regular: each package has as many caches as the next, each cache as many
    /// cores, each core as many threads.
    fn lab_topology(&self) -> Result<String> {
        let threads = self.core[&self.llc[0].core].threads;
        let packages = self.llc.iter().map(|llc| llc.package).max().unwrap_or(0) + 1;
        // Package and number of cores of each cache.
        let mut caches: Vec<(usize, usize)> = vec![(0, 0); self.nr_llcs()];
        for (entry, llc) in self.llc.iter().enumerate() {
            let cache = &mut caches[self.llc_of(entry)];
            *cache = (llc.package, cache.1 + llc.cores);
        }
        let (dies, cores) = (caches.len() / packages, caches[0].1);
        ensure!(
            caches.iter().enumerate().all(|(nth, cache)| *cache == (nth / dies, cores))
                && self.llc.iter().all(|llc| self.core[&llc.core].threads == threads),
            "no VM is like {}: QEMU has no caches of different sizes",
            self.name
        );
        Ok(format!("sockets={packages},dies={dies},cores={cores},threads={threads}"))
    }

    /// As `tests/powerlab/driver/config.c` reads it, and the kernel's own for the governors.
    fn lab_parameters(&self) -> String {
        let clock = match self.clock {
            Clock::Core => "core",
            Clock::Llc => "llc",
            Clock::Package => "package",
            Clock::Kind => "kind",
        };
        let mut text = format!("powerlab=m:{}:{clock}:{}", self.name, self.freq_rate_limit_us);
        for (name, core) in &self.core {
            let permille = (core.smt_power_pct * 10.0).round();
            let speeds: Vec<String> = core.smt_speed_pct.iter().map(u64::to_string).collect();
            let opps: Vec<String> =
                core.opps.iter().map(|opp| format!("{}+{}", opp.mhz, uw(opp.mw))).collect();
            let _ = write!(
                text,
                "/k:{name}:{}:{}:{permille}:{}:{}:{}",
                core.capacity,
                core.threads,
                speeds.join(","),
                opps.join(","),
                states(&core.idle)
            );
        }
        for llc in &self.llc {
            let kind = self.core.keys().take_while(|name| **name != llc.core).count();
            let _ = write!(
                text,
                "/l:{kind}:{}:{}:{}:{}:{}",
                llc.cores,
                llc.package,
                u8::from(llc.joined),
                uw(llc.active_mw),
                states(&llc.idle)
            );
        }
        let package = &self.package;
        let _ = write!(text, "/p:{}:{}", uw(package.active_mw), states(&package.idle));
        let _ = write!(text, " cpuidle.governor={}", self.lab_idle_governor());
        let _ = write!(text, " cpufreq.default_governor={}", self.lab_governor());
        text
    }

    fn lab_idle_governor(&self) -> &'static str {
        match self.idle_governor {
            IdleGovernor::Menu => "menu",
            IdleGovernor::Teo => "teo",
        }
    }

    /// Of those that Linux has.
    fn lab_governor(&self) -> &'static str {
        match self.governor {
            Governor::Interactive
            | Governor::SchedutilRaw
            | Governor::Schedfreq
            | Governor::IntelPstate
            | Governor::Epp(_) => "schedutil",
            other => other.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_given_what_the_file_says() {
        let lab = Machine::find("chromebook2").unwrap().lab().unwrap();
        assert_eq!(lab.topology, "sockets=1,dies=2,cores=4,threads=1");
        let text = &lab.parameters;
        assert!(text.starts_with("powerlab=m:chromebook2:llc:1000/k:a15:1024:1:0::200+184000,"));
        assert!(text.contains(":WFI+1000+1000+12000,off+3000000+500000+1000/l:1:4:0:0:40000:off+"));
        assert!(text.ends_with("/p:0: cpuidle.governor=menu cpufreq.default_governor=schedutil"));
        // The kernel takes 2048 characters, of which some are the VM's.
        assert!(text.len() < 1200, "{}", text.len());
    }

    #[test]
    fn kinds_that_share_a_cache_are_one_die_and_have_their_own_clocks() {
        let lab = Machine::find("phone").unwrap().lab().unwrap();
        assert_eq!(lab.topology, "sockets=1,dies=1,cores=8,threads=1");
        assert!(lab.parameters.starts_with("powerlab=m:phone:kind:1000/"));
        assert!(lab.parameters.contains("/l:1:3:0:1:0:/l:2:1:0:1:0:/p:"), "{}", lab.parameters);
        assert!(lab.parameters.len() < 1400, "{}", lab.parameters.len());
    }

    #[test]
    fn a_machine_that_no_vm_is_like_is_refused() {
        let refused = |name| Machine::find(name).unwrap().lab().unwrap_err().to_string();
        assert!(refused("many").contains("says nothing of the power"));
        assert!(refused("hybrid-laptop").contains("different sizes"));
    }

    #[test]
    fn costs_that_the_laboratory_lacks_are_refused() {
        let (_, text) = crate::MACHINES.iter().find(|(name, _)| *name == "chromebook2").unwrap();
        let turbo = "capacity = 1024\nturbo = [{ cores = 1, mhz = 2000 }]";
        let interrupt = "[[interrupt]]\nname = 'nic'\ncpu = 0\nper_s = 9\nbusy_us = 9\n[[llc]]\n";
        for (from, to, what) in [
            ("capacity = 1024", turbo, "limits of turbo"),
            ("mw = 10 }", "mw = 10, enter_uj = 3 }", "energy of entering idle states"),
            ("hz = 250", "hz = 250\nfreq_change_us = 20", "costs of a change of frequency"),
            ("[[llc]]\n", interrupt, "interrupts that wake no task"),
        ] {
            let machine = Machine::parse(&text.replacen(from, to, 1)).unwrap();
            let refused = machine.lab().unwrap_err().to_string();
            assert_eq!(refused, format!("chromebook2: the laboratory has no {what}"));
        }
    }
}
