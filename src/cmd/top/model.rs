//! What the screen shows: the last two replies and the differences between them, what the
//! user has chosen to see, and the messages shown. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::cpu_states::CpuState;
use crate::bpf_intf as intf;
use crate::control::status::Status;
use crate::machine::sensors::mean;
use crate::scheduler::latency::Latency;

/// Rates over less than this say nothing (ns).
const INTERVAL_MIN_NS: u64 = 200_000_000;
/// A message is shown for this many looks, or until a key is pressed.
const MESSAGE_LOOKS: u32 = 5;

/// A task, with its name.
#[derive(Clone, Debug)]
pub struct Task {
    pub pid: u32,
    pub tgid: u32,
    pub cpu: usize,
    pub util: u32,
    pub name: String,
}

/// What the machine reports beside the scheduler, since the look before; `None` is what it
/// cannot report.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub power_w: Option<f64>,
    /// What each CPU reports.
    pub cpus: BTreeMap<usize, CpuState>,
    /// Share of the time in each idle state of the package (%), if there is one package.
    pub package_states: Vec<(String, f64)>,
}

/// One look.
#[derive(Clone, Debug)]
pub struct Sample {
    pub status: Status,
    pub tasks: Vec<Task>,
    pub machine: Machine,
}

/// What happened in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub spills: f64,
    pub migrations: f64,
    pub queued: f64,
    pub preempts: f64,
    pub grown: f64,
    pub shrunk: f64,
}

/// By what the tasks are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Util,
    Cpu,
    Pid,
    Name,
}

impl Sort {
    /// The next one, in turn.
    pub fn next(self) -> Self {
        match self {
            Sort::Util => Sort::Cpu,
            Sort::Cpu => Sort::Pid,
            Sort::Pid => Sort::Name,
            Sort::Name => Sort::Util,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Sort::Util => "utilization",
            Sort::Cpu => "CPU",
            Sort::Pid => "PID",
            Sort::Name => "name",
        }
    }
}

/// All that the screen depends on.
pub struct Model {
    pub sample: Option<Sample>,
    /// What the differences are to.
    base: Option<Status>,
    /// Why there is no answer, if there is none.
    pub lost: Option<String>,
    pub read_only: bool,
    pub colour: bool,
    pub paused: bool,
    pub help: bool,
    pub sort: Sort,
    /// The first task that is shown.
    pub first_task: usize,
    /// 0: all CPUs at a glance; else a page of their bars, where not all of them fit.
    pub page: usize,
    message: Option<(String, u32)>,
    /// The ceiling that was requested last, while the answer is not here.
    requested_cores: Option<usize>,
    unanswered: u32,
}

impl Model {
    /// Nothing is known yet.
    pub fn new(read_only: bool, colour: bool) -> Self {
        Model {
            sample: None,
            base: None,
            lost: None,
            read_only,
            colour,
            paused: false,
            help: false,
            sort: Sort::default(),
            first_task: 0,
            page: 0,
            message: None,
            requested_cores: None,
            unanswered: 0,
        }
    }

    /// Takes a look's outcome: a sample, or why there is none.
    pub fn learn(&mut self, looked: Result<Sample, String>) {
        if let Some((_, looks)) = &mut self.message {
            *looks -= 1;
            self.message.take_if(|(_, looks)| *looks == 0);
        }
        let sample = match looked {
            Ok(sample) => sample,
            Err(why) => {
                (self.sample, self.base, self.lost) = (None, None, Some(why));
                return;
            }
        };
        self.lost = None;
        let before = self.sample.replace(sample).map(|sample| sample.status);
        let Some(now) = self.sample.as_ref().map(|sample| &sample.status) else { return };
        // One that has been there too short keeps the base of the one before.
        let earlier = before.filter(|before| before.now_ns + INTERVAL_MIN_NS <= now.now_ns);
        self.base = earlier.or(self.base.take()).filter(|base| is_same_run(base, now));
    }

    /// Whether there is something to take differences of.
    pub fn has_rates(&self) -> bool {
        self.base.is_some()
    }

    /// The last reply and the one before it.
    fn two(&self) -> Option<(&Status, &Status)> {
        Some((&self.sample.as_ref()?.status, self.base.as_ref()?))
    }

    pub fn rates(&self) -> Option<Rates> {
        let (now, base) = self.two()?;
        let seconds = now.now_ns.checked_sub(base.now_ns).filter(|&ns| ns > 0)? as f64 / 1e9;
        let (is, was) = (&now.counters, &base.counters);
        let per_s = |is: u64, was: u64| is.saturating_sub(was) as f64 / seconds;
        Some(Rates {
            spills: per_s(is.spill, was.spill),
            migrations: per_s(is.migrate, was.migrate),
            queued: per_s(is.queued, was.queued),
            preempts: per_s(is.preempt, was.preempt),
            grown: per_s(is.grow, was.grow),
            shrunk: per_s(is.shrink, was.shrink),
        })
    }

    /// The wake-ups in between.
    pub fn wake_latency(&self) -> Option<Latency> {
        let (now, base) = self.two()?;
        Some(now.wake_latency.since(&base.wake_latency))
    }

    /// How much of the time in between the CPU of this rank was not idle (%).
    pub fn non_idle_pct(&self, rank: usize) -> Option<f64> {
        let (now, base) = self.two()?;
        let (is, was) = (now.cpus.get(rank)?, base.cpus.get(rank)?);
        let interval_ns = now.now_ns.checked_sub(base.now_ns).filter(|&ns| ns > 0)?;
        let busy_ns = is.busy_ns.saturating_sub(was.busy_ns);
        (is.cpu == was.cpu).then(|| (busy_ns as f64 / interval_ns as f64 * 100.0).min(100.0))
    }

    /// What the CPU of this rank reports of itself, if it is online.
    pub fn cpu_state(&self, rank: usize) -> Option<CpuState> {
        let sample = self.sample.as_ref()?;
        let cpu = sample.status.cpus.get(rank).filter(|cpu| cpu.online)?;
        let mut state = sample.machine.cpus.get(&cpu.cpu)?.clone();
        if let Some((_, pct)) = &mut state.deepest_idle {
            // The share is of when the CPU last slept.
            *pct = pct.min(100.0 - self.non_idle_pct(rank).unwrap_or(0.0));
        }
        Some(state)
    }

    /// The mean frequency (MHz), and the mean share of each CPU's deepest idle state (%), with its name if all have the
    /// same.
    pub fn mean_state(&self) -> CpuState {
        let ranks = 0..self.sample.as_ref().map_or(0, |sample| sample.status.cpus.len());
        let states: Vec<_> = ranks.filter_map(|rank| self.cpu_state(rank)).collect();
        let frequencies: Vec<_> = states.iter().filter_map(|state| state.frequency_mhz).collect();
        let (names, shares): (Vec<_>, Vec<_>) =
            states.into_iter().filter_map(|state| state.deepest_idle).unzip();
        let is_one = names.iter().all(|name| *name == names[0]);
        let name = if is_one { names.into_iter().next() } else { Some("deepest".to_owned()) };
        CpuState {
            frequency_mhz: mean(&frequencies),
            deepest_idle: name.zip(mean(&shares)),
            ..CpuState::default()
        }
    }

    /// The tasks as sorted; those that are equal by utilization.
    pub fn tasks(&self) -> Vec<&Task> {
        let Some(sample) = &self.sample else { return vec![] };
        let mut tasks: Vec<&Task> = sample.tasks.iter().collect();
        tasks.sort_by_key(|task| (Reverse(task.util), task.pid));
        match self.sort {
            Sort::Util => {}
            Sort::Cpu => tasks.sort_by_key(|task| task.cpu),
            Sort::Pid => tasks.sort_by_key(|task| task.pid),
            Sort::Name => tasks.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        tasks
    }

    /// How many cores may be used, of how many: with what was requested last.
    pub fn ceiling(&self) -> Option<(usize, usize)> {
        let status = &self.sample.as_ref()?.status;
        let cores = status.nr_cores();
        Some((self.requested_cores.unwrap_or(status.max_cores).min(cores), cores))
    }

    /// A request has been sent.
    pub fn requested(&mut self, max_cores: Option<usize>) {
        self.unanswered += 1;
        self.requested_cores = max_cores.or(self.requested_cores);
    }

    /// It was answered: with what is in force now, or with why it cannot be.
    pub fn answered(&mut self, outcome: Result<String, String>) {
        self.unanswered = self.unanswered.saturating_sub(1);
        if self.unanswered == 0 {
            let cores = self.requested_cores.take().filter(|_| outcome.is_ok());
            if let (Some(cores), Some(sample)) = (cores, &mut self.sample) {
                sample.status.max_cores = cores;
            }
        }
        self.say(outcome.unwrap_or_else(|why| why));
    }

    /// Shows the user a message, for a while.
    pub fn say(&mut self, text: String) {
        self.message = Some((text, MESSAGE_LOOKS));
    }

    pub fn message(&self) -> Option<&str> {
        self.message.as_ref().map(|(text, _)| text.as_str())
    }

    pub fn forget_message(&mut self) {
        self.message = None;
    }
}

/// Whether both are of the same scheduler, not of one that was started since.
fn is_same_run(base: &Status, now: &Status) -> bool {
    base.enable_seq == now.enable_seq
        && base.uptime_s <= now.uptime_s
        && base.cpus.len() == now.cpus.len()
}

/// As a number of CPUs, or a share of one.
pub fn in_cpus(capacity: u64) -> f64 {
    capacity as f64 / f64::from(intf::pp_limits_PP_CAPACITY_MAX)
}
