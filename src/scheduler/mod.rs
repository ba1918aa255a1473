//! The only file that touches the BPF skeleton: load, attach, apply a policy,
//! read, detach.

mod bpf_skel;
pub mod counters;
#[cfg(test)]
mod event_table;
mod held_timer;
pub mod kernel_exit;
pub mod latency;
mod observe;
pub mod placement;
pub mod snapshot;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use crossbeam::channel::{Receiver, never};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, OpenObject, PrintLevel, ProgramInput};
use log::{debug, info, warn};
use scx_utils::{scx_ops_attach, uei_set_size};

use crate::bpf_intf as intf;
use crate::machine::power_model::PowerModel;
use crate::machine::seen_cpus::SeenCpus;
use crate::machine::topology::Ranks;
use crate::machine::{bpf_topology, calibrated, kernel};
use crate::settings::mode::Mode;
use crate::settings::policy::{LATENCY_BUDGET, Policy};
use crate::settings::workloads::Treatment;
use bpf_skel::{BpfSkel, BpfSkelBuilder, OpenBpfSkel};
use held_timer::HeldTimer;
use kernel_exit::KernelExit;
use latency::Latency;
use snapshot::Snapshot;

/// The loaded and attached scheduler; dropping it detaches.
pub struct Scheduler<'a> {
    skel: BpfSkel<'a>,
    link: Option<Link>,
    slot: u32,
    power: PowerModel,
    /// What mode energy goes by was said.
    has_said_source: bool,
    /// Where programs have no timers.
    held_timer: Option<HeldTimer>,
}

/// libbpf maps the programs' variables into memory as it loads them.
const NO_DATA: &str = "the BPF object's variables are not mapped";

/// What a policy switch did.
#[derive(Clone, Copy, Debug)]
pub struct Applied {
    /// From the write until the active set has its new size.
    pub took: Duration,
    /// The size of the active set now.
    pub active: u32,
}

/// A CPU sizes the active set as soon as it looks for what to run, and the one
/// that called the BPF program is kicked to do so: it mostly has, when the call
/// returns. If all are busy with real-time tasks it is later; the decisions
/// about where a task runs follow the new policy nevertheless.
const SIZING_POLL: Duration = Duration::from_micros(50);
const SIZING_LIMIT: Duration = Duration::from_millis(100);

impl<'a> Scheduler<'a> {
    /// Loads and attaches. On any error nothing is left attached.
    pub fn start(
        seen: &SeenCpus,
        policy: Policy,
        verbose: bool,
        object: &'a mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        quiet_libbpf(verbose);
        scx_utils::try_set_rlimit_infinity();
        let mut skel = open(object, seen.hotplug_seq)?;
        let power = configure(&mut skel, &seen.ranks, policy)?;
        let mut skel = skel.load().map_err(kernel::explain_load_failure)?;
        if verbose {
            log_verified(&skel);
        }
        let held_timer =
            if kernel::is_preempt_rt() { Some(HeldTimer::start(&skel)?) } else { None };
        let link = scx_ops_attach!(skel, powerpack_ops).map_err(kernel::explain_attach_failure)?;
        let mut scheduler = Scheduler {
            skel,
            link: Some(link),
            slot: 0,
            power,
            has_said_source: false,
            held_timer,
        };
        scheduler.say_what_energy_goes_by(policy);
        Ok(scheduler)
    }

    /// Puts `policy` in force: one write and one BPF call, nothing is detached.
    pub fn apply(&mut self, policy: Policy, ranks: &Ranks) -> Result<Applied> {
        let begin = Instant::now();
        let slot = self.slot ^ 1;
        let bss = self.skel.maps.bss_data.as_mut().context(NO_DATA)?;
        store(&mut bss.policies[slot as usize], policy.to_bpf(ranks));
        let mut args = intf::pp_apply_args { slot };
        let input = ProgramInput { context_in: Some(bytes_of(&mut args)), ..Default::default() };
        self.skel.progs.apply_policy.test_run(input).context("cannot switch")?;
        self.slot = slot;
        self.say_what_energy_goes_by(policy);
        let active_set = &self.skel.maps.bss_pp_active_data.as_ref().context(NO_DATA)?.active_set;
        let active = || load::<_, intf::pp_active>(active_set);
        while active().stale != 0 && begin.elapsed() < SIZING_LIMIT {
            thread::sleep(SIZING_POLL);
        }
        Ok(Applied { took: begin.elapsed(), active: active().nr })
    }

    /// Has the tasks of a cgroup, and of those below it that say nothing else, treated so. The answer is
    /// whether the kernel has found it: one that is gone, or that it hides from a cgroup namespace, is not
    /// an error.
    pub fn classify(&self, cgroup_id: u64, treatment: Treatment) -> Result<bool> {
        let mut args = intf::pp_classify_args { cgroup_id, workload: treatment.to_bpf(), pad: 0 };
        let input = ProgramInput { context_in: Some(bytes_of(&mut args)), ..Default::default() };
        let output =
            self.skel.progs.classify.test_run(input).context("cannot classify a cgroup")?;
        Ok(output.return_value == 0)
    }

    /// Has all tasks look up how their cgroup is treated, at their next tick or stop.
    pub fn invalidate_cgroups(&mut self) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_mut().context(NO_DATA)?;
        // BPF counts here too; that it is another number is all that matters.
        let next: u32 = load::<u32, u32>(&bss.cgroup_generation).wrapping_add(1);
        store(&mut bss.cgroup_generation, next);
        Ok(())
    }

    /// How many cgroups with the cpu controller there have been.
    pub fn cgroups_made(&self) -> Result<u32> {
        let bss = self.skel.maps.bss_data.as_ref().context(NO_DATA)?;
        Ok(load(&bss.nr_cgroups_made))
    }

    /// The cgroups with a limit in `cpu.max` that is enforced, and what came of it.
    pub fn limits(&self) -> Result<Vec<intf::pp_limit>> {
        let limits = &self.skel.maps.bss_pp_limits_data.as_ref().context(NO_DATA)?.limits;
        let all = limits.iter().map(load::<_, intf::pp_limit>);
        Ok(all.filter(|limit| limit.cgroup_id != 0 && limit.quota_ns != 0).collect())
    }

    /// Whether more cgroups have had a limit than there are places for.
    pub fn has_unlimited(&self) -> Result<bool> {
        let bss = self.skel.maps.bss_data.as_ref().context(NO_DATA)?;
        Ok(load::<u32, u32>(&bss.has_unlimited) != 0)
    }

    /// Reads all CPUs and the active set.
    pub fn snapshot(&self, ranks: &Ranks) -> Result<Snapshot> {
        self.skel.progs.sample_now.test_run(ProgramInput::default()).context("cannot sample")?;
        let maps = &self.skel.maps;
        let bss = maps.bss_data.as_ref().context(NO_DATA)?;
        let cpus = &maps.bss_pp_cpus_data.as_ref().context(NO_DATA)?.cpus;
        let active_set = &maps.bss_pp_active_data.as_ref().context(NO_DATA)?.active_set;
        let last = ranks.cpus().iter().map(|cpu| cpu.cpu).max().unwrap_or(0);
        // It may be too high for a moment; below zero it is as little as nothing.
        let waiting = |queue: usize| load::<_, i32>(&bss.queues[queue].nr).max(0) as u32;
        Ok(Snapshot {
            now_ns: load(&bss.sampled_ns),
            active: load(active_set),
            active_ranks: bss.scope_ranks[intf::pp_scope_PP_SCOPE_ACTIVE as usize].to_vec(),
            cpus: cpus[..=last].iter().map(load).collect(),
            has_cpufreq: maps.rodata_data.as_ref().context(NO_DATA)?.topology.has_cpufreq != 0,
            waiting_of_cpu: (0..=last).map(|cpu| waiting(CPU_QUEUE_BASE + cpu)).collect(),
            waiting_of_llc: (0..ranks.llcs().len()).map(waiting).collect(),
            latency: bss.latencies[..=last].iter().fold(Latency::default(), |mut sum, cpu| {
                sum.add(&load(cpu));
                sum
            }),
        })
    }

    /// What is known of the power of the machine's CPUs.
    pub fn power(&self) -> &PowerModel {
        &self.power
    }

    /// A descriptor that becomes readable when the kernel ends the scheduler.
    pub fn exit_fd(&self) -> Result<OwnedFd> {
        Ok(self.skel.maps.exit_ring.as_fd().try_clone_to_owned()?)
    }

    /// Says why what the scheduler needs of this process has ended, should it do so: then it is to be detached.
    pub fn failure(&self) -> Receiver<Error> {
        self.held_timer.as_ref().map_or_else(never, HeldTimer::failure)
    }

    /// Whether the kernel has ended it.
    pub fn has_ended(&self) -> bool {
        self.kernel_exit().is_some()
    }

    /// Detaches, and returns why the kernel had ended the scheduler, if it had.
    pub fn stop(mut self) -> Option<KernelExit> {
        let ended = self.kernel_exit();
        drop(self.link.take());
        ended.or_else(|| self.kernel_exit())
    }

    /// As that mode begins for the first time.
    fn say_what_energy_goes_by(&mut self, policy: Policy) {
        if policy.mode == Mode::Energy && !self.has_said_source {
            info!("mode energy goes by {}", self.power.source);
            self.has_said_source = true;
        }
    }

    fn kernel_exit(&self) -> Option<KernelExit> {
        KernelExit::read(&self.skel.maps.data_data.as_ref()?.uei)
    }
}

/// libbpf explains failures at length; the user wants that only with -v.
pub fn quiet_libbpf(verbose: bool) {
    fn log(_: PrintLevel, message: String) {
        debug!("{}", message.trim_end());
    }
    libbpf_rs::set_print(verbose.then_some((PrintLevel::Debug, log)));
}

/// How many instructions the verifier looked at, by program: that is what loading takes
/// its time for.
fn log_verified(skel: &BpfSkel<'_>) {
    for program in skel.object().progs() {
        let mut info = libbpf_rs::libbpf_sys::bpf_prog_info::default();
        let mut size = size_of_val(&info) as u32;
        // SAFETY: a descriptor of a program, and a buffer of that size.
        let status = unsafe {
            libbpf_rs::libbpf_sys::bpf_prog_get_info_by_fd(
                program.as_fd().as_raw_fd(),
                &raw mut info,
                &raw mut size,
            )
        };
        if status == 0 {
            let name = program.name().to_string_lossy();
            let (looked_at, length) = (info.verified_insns, info.xlated_prog_len / INSN_BYTES);
            debug!("verified {name}: {looked_at} instructions of {length}");
        }
    }
}

/// struct bpf_insn (`include/uapi/linux/bpf.h`).
const INSN_BYTES: u32 = 8;

/// What `scx_ops_open!` and `scx_ops_load!` do, less what takes long at each load
/// and is not needed here: a second look at all of the kernel's BTF, probes for an arena, and a
/// traced function, which unloading would wait for.
fn open(object: &mut MaybeUninit<OpenObject>, hotplug_seq: Option<u64>) -> Result<OpenBpfSkel<'_>> {
    let mut skel = BpfSkelBuilder::default().open(object).context("cannot open the BPF object")?;
    skel.progs.scx_lib_init_probe.set_autoload(false);
    skel.progs.release_due.set_autoload(kernel::is_preempt_rt());
    let ops = skel.struct_ops.powerpack_ops_mut();
    // The kernel refuses a scheduler that does not know of the last hotplug; of any, with 0.
    ops.hotplug_seq = hotplug_seq.unwrap_or(0);
    if let Ok(ms) = std::env::var("SCX_TIMEOUT_MS") {
        ops.timeout_ms = ms.parse().context("SCX_TIMEOUT_MS is no number")?;
    }
    let names = kernel::KernelNames::read()?;
    if names.has("SCX_OPS_ENQ_MIGRATION_DISABLED") {
        ops.flags |= ENQ_MIGRATION_DISABLED;
    }
    if !kernel::reports_cgroups(&names) {
        ops.cgroup_init = std::ptr::null_mut();
        ops.cgroup_exit = std::ptr::null_mut();
        ops.cgroup_set_weight = std::ptr::null_mut();
        ops.cgroup_move = std::ptr::null_mut();
    }
    if !kernel::reports_cpu_max(&names) {
        ops.cgroup_set_bandwidth = std::ptr::null_mut();
    }
    uei_set_size!(skel, powerpack_ops, uei);
    Ok(skel)
}

/// Of enum scx_ops_flags, later than 6.12: ops.enqueue is asked about tasks with
/// migration disabled too.
const ENQ_MIGRATION_DISABLED: u64 = 1 << 4;

/// Writes what the programs find as they are loaded; returns what is known of the power of the machine's CPUs.
fn configure(skel: &mut OpenBpfSkel<'_>, ranks: &Ranks, policy: Policy) -> Result<PowerModel> {
    let rodata = skel.maps.rodata_data.as_mut().context("no .rodata")?;
    // A file that cannot be read costs no more than what is in it.
    let calibrated = calibrated::read(Path::new(calibrated::FILE), ranks).unwrap_or_else(|err| {
        warn!("what scx_powerpack calibrate has measured is of no use: {err:#}");
        None
    });
    let power =
        PowerModel::of_this_machine(ranks, kernel::has_cpufreq(), LATENCY_BUDGET, calibrated);
    let topology = bpf_topology::of(ranks, kernel::tick_ns()?, &power);
    store(&mut rodata.topology, *topology);
    rodata.agent_is_timer = kernel::is_preempt_rt();
    let bss = skel.maps.bss_data.as_mut().context(NO_DATA)?;
    store(&mut bss.policies[0], policy.to_bpf(ranks));
    Ok(power)
}

/// The first queue of a single CPU.
const CPU_QUEUE_BASE: usize = intf::pp_limits_PP_CPU_QUEUE_BASE as usize;

/// The arguments of a program, as it reads them.
fn bytes_of<T: Copy>(args: &mut T) -> &mut [u8] {
    // SAFETY: plain integers without padding, borrowed for as long as the bytes are.
    unsafe { std::slice::from_raw_parts_mut((&raw mut *args).cast::<u8>(), size_of::<T>()) }
}

/// Reads what BPF writes meanwhile: each field is a word, and a torn snapshot is
/// only off by an event. The skeleton has types of its own for the structs of
/// intf.h, of the same layout.
fn load<From: Copy, To: Copy>(from: &From) -> To {
    const { assert!(size_of::<From>() == size_of::<To>()) };
    // SAFETY: same size, both are plain integers in the same C struct.
    unsafe { std::ptr::read_volatile((&raw const *from).cast()) }
}

/// The other direction.
fn store<To: Copy, From: Copy>(to: &mut To, from: From) {
    const { assert!(size_of::<From>() == size_of::<To>()) };
    // SAFETY: as in load().
    unsafe { std::ptr::write_volatile((&raw mut *to).cast(), from) }
}

/// Lines of the table of events.
const NR_EVENTS: usize = intf::pp_event_PP_NR_EVENTS as usize;

/// Sizes that C asserts too: what one side means the other reads.
const _: () = {
    assert!(size_of::<intf::pp_topology>() == 154_560);
    assert!(size_of::<intf::pp_policy>() == 56);
    assert!(size_of::<intf::pp_cpu>() == (160 + 8 * NR_EVENTS + 8).next_multiple_of(64));
    assert!(size_of::<intf::pp_active>() == 32);
    assert!(size_of::<intf::pp_queue>() == 64);
    assert!(size_of::<intf::pp_limit>() == 128);
    assert!(size_of::<intf::pp_latency>() == 192);
    assert!(size_of::<intf::pp_why_record>() == 48);
    assert!(size_of::<intf::pp_listed_task>() == 16);
};

#[cfg(test)]
mod tests {
    use std::fs;

    /// Compiled into the BPF side or made by its macros, not looked up; and one that is looked up only where the kernel has it.
    const NOT_DEFINED: [&str; 5] = [
        "SCX_WAKE_SYNC",
        "SCX_OPS_ENQ_LAST",
        "SCX_OPS_ENQ_EXITING",
        "SCX_OPS_DEFINE",
        "SCX_ENQ_IMMED",
    ];

    /// One that is not is 0 there, without a word.
    #[test]
    fn every_constant_of_the_kernel_is_looked_up() {
        let lookups = include_str!("../bpf/kernel.bpf.h");
        for file in fs::read_dir("src/bpf").unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for word in words.filter(|word| word.starts_with("SCX_")) {
                let known = NOT_DEFINED.contains(&word);
                assert!(known || lookups.contains(&format!("#define {word} ")), "{word}");
            }
        }
    }
}
