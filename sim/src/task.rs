//! A task: what the kernel and the scheduler know of it, and what it does.

use std::ptr;

use crate::ext::{CpuMask, SchedExtEntity, TaskPtr, TaskStruct};

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So much work (ns on the fastest CPU at its highest frequency).
    Run(u64),
    /// Until that instant (ns).
    SleepUntil(u64),
    /// Until another task wakes it, which may have happened already.
    Block,
    Exit,
}

/// What a program sees of the world, and what it does to other tasks.
#[derive(Debug, Default)]
pub struct Context {
    pub now_ns: u64,
    /// Tasks to wake, and whether the waker is about to sleep (WF_SYNC).
    pub(crate) wakes: Vec<(usize, bool)>,
}

impl Context {
    /// Wakes task `id`; `sync`: its waker is about to sleep.
    pub fn wake(&mut self, id: usize, sync: bool) {
        self.wakes.push((id, sync));
    }
}

/// What a task does: asked for the next step when the last one is done.
pub trait Program {
    fn next(&mut self, context: &mut Context) -> Step;
}

/// In which cgroup a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// One below the root: its weight (100 = default, `None`: the root itself), and what the user's
    /// table says of it (`enum pp_workload`; 0: nothing).
    Kind(Option<u32>, u32),
    /// One that [`Kernel::make_cgroup`](crate::Kernel::make_cgroup) has made.
    Made(usize),
}

impl Home {
    pub const ROOT: Self = Home::Kind(None, 0);

    /// Weight in a fair class (1024 = nice 0) of a task of `weight` (100 = nice 0): a cgroup's counts
    /// for each of its tasks, and those above it for none.
    pub fn load_weight(self, weight: u32) -> u64 {
        let of_cgroup = match self {
            Home::Kind(weight, _) => weight.unwrap_or(100),
            Home::Made(_) => 100,
        };
        (u64::from(weight) * 1024 / 100 * u64::from(of_cgroup) / 100).max(1)
    }
}

/// What is asked for when a task is made.
pub struct TaskSpec {
    pub name: String,
    pub program: Box<dyn Program>,
    /// As the kernel's `scx.weight`: 100 = nice 0, 1..=10,000.
    pub weight: u32,
    /// Where it may run.
    pub allowed: CpuMask,
    pub home: Home,
    /// Which CPU's interrupt wakes it; `None`: the timer where it last ran.
    pub irq_cpu: Option<usize>,
    /// It shares data with all others that do.
    pub shares_data: bool,
    /// What it has in its caches (KiB).
    pub cache_kib: u64,
}

impl TaskSpec {
    /// A plain one: of nice 0, and allowed everywhere that `allowed` says.
    pub fn new(program: Box<dyn Program>, allowed: CpuMask) -> Self {
        TaskSpec {
            name: String::new(),
            program,
            weight: 100,
            allowed,
            home: Home::ROOT,
            irq_cpu: None,
            shares_data: false,
            cache_kib: 0,
        }
    }
}

/// The flags of a process that no signal ends.
static NO_SIGNAL: u32 = 0;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Asleep,
    /// In some queue.
    Queued,
    Running,
    Dead,
}

/// A task.
pub struct Task {
    /// Stays where it is: the C side has its address.
    c: Box<TaskStruct>,
    /// So does this, by `cpus_ptr`.
    allowed: Box<CpuMask>,
    pub name: String,
    pub program: Box<dyn Program>,
    pub state: State,
    /// It sleeps until another task wakes it.
    pub(crate) blocked: bool,
    /// Wakeups that came before it slept.
    pub(crate) tokens: u32,
    pub(crate) irq_cpu: Option<usize>,
    pub(crate) shares_data: bool,
    pub(crate) cache_kib: u64,
    /// Where it last ran.
    pub(crate) last_cpu: Option<usize>,
    /// Since when it has been queued (ns).
    pub queued_since_ns: u64,
    /// The longest that it ever was (ns).
    pub longest_wait_ns: u64,
    /// How often it was queued and then ran, and for how long in all (ns).
    pub waits: u64,
    pub waited_ns: u64,
    /// Work done in all, and left of the step (ns x 1024, at capacity 1).
    pub work_done: u64,
    pub work_left: u64,
    pub migrations: u64,
}

impl Task {
    pub fn new(id: usize, spec: TaskSpec) -> Self {
        let allowed = Box::new(spec.allowed);
        let c = Box::new(TaskStruct {
            scx: SchedExtEntity { weight: spec.weight, ..SchedExtEntity::default() },
            ran_ns: 0,
            cpus_ptr: &raw const *allowed,
            storage: ptr::null_mut(),
            cgroup: ptr::null_mut(),
            id: id as i32,
            cpu: allowed.first().unwrap_or(0) as i32,
            nr_cpus_allowed: allowed.count() as i32,
            migration_disabled: 0,
            pad: 0,
            state: 0,
            flags: 0,
            pad_end: 0,
            // Nobody is killed here.
            signal: &raw const NO_SIGNAL,
        });
        Task {
            c,
            allowed,
            name: spec.name,
            program: spec.program,
            state: State::Asleep,
            blocked: false,
            tokens: 0,
            irq_cpu: spec.irq_cpu,
            shares_data: spec.shares_data,
            cache_kib: spec.cache_kib,
            last_cpu: None,
            queued_since_ns: 0,
            longest_wait_ns: 0,
            waits: 0,
            waited_ns: 0,
            work_done: 0,
            work_left: 0,
            migrations: 0,
        }
    }

    /// As the C side knows it.
    pub fn ptr(&mut self) -> TaskPtr {
        &raw mut *self.c
    }

    pub fn c(&self) -> &TaskStruct {
        &self.c
    }

    pub fn c_mut(&mut self) -> &mut TaskStruct {
        &mut self.c
    }

    /// Time on a CPU (ns).
    pub fn ran_ns(&self) -> u64 {
        self.c.ran_ns
    }

    pub fn cpu(&self) -> usize {
        self.c.cpu as usize
    }

    /// Changes where it may run; both as the C side knows them.
    pub fn allow(&mut self, allowed: CpuMask) -> (TaskPtr, *const CpuMask) {
        *self.allowed = allowed;
        self.c.nr_cpus_allowed = allowed.count() as i32;
        (self.ptr(), self.c.cpus_ptr)
    }

    pub fn may_run_on(&self, cpu: usize) -> bool {
        self.allowed.has(cpu)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: allocated by the C side with calloc, or null.
        unsafe { libc::free(self.c.storage) };
    }
}
