//! `scx_powerpack sim`: the modes on a simulated machine, side by side.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome, PolicyBytes, Workload};

use crate::bpf::intf::pp_policy;
use crate::cli::SimArgs;
use crate::policy::{Mode, Policy};
use crate::topology::{RankedCpu, Ranks};

/// Simulates every mode asked for and prints a table.
/// Fails with a sentence on an unknown machine, workload or mode.
pub fn run(args: &SimArgs) -> Result<()> {
    let machine = Machine::find(&args.machine)?;
    let workload = Workload::find(&args.workload)?;
    let modes = args.policy.iter().map(|name| name.parse()).collect::<Result<Vec<Mode>>>()?;
    println!("{}: {}\n{}: {}", machine.name, machine.about, workload.name, workload.about);
    println!(
        "\n{:<10} {:>7} {:>9} {:>9} {:>9} {:>11} {:>11}  non-idle % of each CPU, by rank",
        "mode", "total %", "beyond %", "switches", "overruns", "longest us", "delay us"
    );
    for mode in modes {
        let (ranks, outcome) = simulate(&machine, &workload, mode, args.until.as_secs_f64())?;
        print_row(mode, &ranks, &outcome);
    }
    Ok(())
}

fn simulate(
    machine: &Machine,
    workload: &Workload,
    mode: Mode,
    seconds: f64,
) -> Result<(Ranks, Outcome)> {
    let ranks = rank(machine)?;
    let policy = Policy::new(mode, None, &ranks)?.to_bpf(&ranks);
    let outcome =
        powerpack_sim::run(machine, &for_sim(&ranks), &bytes_of(policy), workload, seconds);
    Ok((ranks, outcome))
}

/// The ranks of a simulated machine, as the agent derives them.
pub fn rank(machine: &Machine) -> Result<Ranks> {
    let cpus = machine.cpus().into_iter().map(|cpu| RankedCpu {
        cpu: cpu.cpu,
        core: cpu.core,
        llc: cpu.llc,
        package: cpu.package,
        node: cpu.node,
        capacity: cpu.capacity,
        online: true,
    });
    Ranks::of(cpus.collect())
}

/// The same as the simulator takes them.
pub fn for_sim(ranks: &Ranks) -> Vec<powerpack_sim::RankedCpu> {
    let next_is_sibling = ranks.next_is_sibling();
    let cpus = ranks.cpus().iter().enumerate();
    cpus.map(|(rank, cpu)| powerpack_sim::RankedCpu {
        cpu: cpu.cpu as u32,
        llc: cpu.llc as u32,
        capacity: cpu.capacity as u32,
        online: cpu.online,
        next_is_sibling: next_is_sibling[rank],
    })
    .collect()
}

/// As the BPF side reads it.
pub fn bytes_of(policy: pp_policy) -> PolicyBytes {
    // SAFETY: plain numbers without padding, of that size.
    PolicyBytes(unsafe { std::mem::transmute::<pp_policy, [u8; 40]>(policy) })
}

fn print_row(mode: Mode, ranks: &Ranks, outcome: &Outcome) {
    let longest = |of: fn(&powerpack_sim::TaskOutcome) -> f64| {
        outcome.tasks.iter().map(of).fold(0.0, f64::max)
    };
    let cpus = ranks.cpus().iter().map(|cpu| format!("{:.1}", outcome.non_idle_pct[cpu.cpu]));
    println!(
        "{:<10} {:>7.1} {:>9.3} {:>9} {:>9} {:>11.0} {:>11.0}  {}",
        mode.name(),
        outcome.non_idle_pct.iter().sum::<f64>(),
        outcome.beyond_busiest_pct,
        outcome.switches,
        outcome.overruns,
        longest(|task| task.max_us),
        longest(|task| task.max_delay_us),
        cpus.collect::<Vec<_>>().join(" "),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn light(mode: Mode) -> Outcome {
        let (machine, workload) = (Machine::find("vm4"), Workload::find("light"));
        simulate(&machine.unwrap(), &workload.unwrap(), mode, 20.0).unwrap().1
    }

    /// docs/baseline.md has the same of the real kernel.
    #[test]
    fn the_light_load_is_packed_on_one_cpu_and_spread_over_four() {
        let packing = light(Mode::Packing);
        assert!(packing.beyond_busiest_pct < 0.1, "{packing:?}");
        assert!((28.0..29.0).contains(&packing.non_idle_pct[0]), "{packing:?}");
        assert!(packing.overruns == 0 && packing.tasks.iter().all(|task| task.max_us < 6000.0));
        let spread = light(Mode::Spread);
        assert!(spread.non_idle_pct.iter().all(|&pct| pct > 3.0), "{spread:?}");
    }

    #[test]
    fn the_same_input_gives_the_same_output() {
        assert_eq!(light(Mode::Packing), light(Mode::Packing));
        assert_eq!(light(Mode::Spread), light(Mode::Spread));
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let text = format!("{:#}", Machine::find("vm5").unwrap_err());
        assert_eq!(text, "there is no machine 'vm5': choose one of vm4, vm8, or a file");
        let text = Workload::parse("name=\"x\"\nabout=\"\"\n[[task]]\n").unwrap_err().to_string();
        assert_eq!(text, "a task is either periodic or a hog");
    }
}
