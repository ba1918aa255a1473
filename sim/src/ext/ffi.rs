//! What both sides of the language border mean: the structs of
//! `include/scx/common.bpf.h`, and the scheduler's variables and ops.

use std::ffi::c_void;

/// `struct cpumask`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuMask {
    pub bits: [u64; 16],
}

/// How many CPUs a mask holds.
pub const MAX_CPUS: usize = 1024;

impl CpuMask {
    /// The CPUs of `cpus`.
    pub fn of(cpus: impl IntoIterator<Item = usize>) -> Self {
        let mut mask = CpuMask::default();
        for cpu in cpus {
            mask.bits[cpu / 64] |= 1 << (cpu % 64);
        }
        mask
    }

    pub fn has(&self, cpu: usize) -> bool {
        self.bits[cpu / 64] >> (cpu % 64) & 1 == 1
    }

    pub fn first(&self) -> Option<usize> {
        (0..MAX_CPUS).find(|&cpu| self.has(cpu))
    }

    pub fn count(&self) -> usize {
        self.bits.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// `struct sched_ext_entity`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SchedExtEntity {
    pub slice_ns: u64,
    pub dsq_vtime: u64,
    pub weight: u32,
    pub flags: u32,
}

/// `struct task_struct`. `storage` belongs to the scheduler's C side.
#[repr(C)]
#[derive(Debug)]
pub struct TaskStruct {
    pub scx: SchedExtEntity,
    /// `se.sum_exec_runtime`: time on a CPU (ns).
    pub ran_ns: u64,
    pub cpus_ptr: *const CpuMask,
    pub storage: *mut c_void,
    pub cgroup: *mut c_void,
    pub id: i32,
    pub cpu: i32,
    pub nr_cpus_allowed: i32,
    pub migration_disabled: u32,
    pub pad: u32,
    /// 0: it runs, or is about to.
    pub state: u32,
    pub flags: u32,
    pub pad_end: u32,
    /// `struct signal_struct`: its flags.
    pub signal: *const u32,
}

/// Of `TaskStruct::state`: asleep.
pub const TASK_INTERRUPTIBLE: u32 = 1;

/// A task as the C side knows it.
pub type TaskPtr = *mut TaskStruct;

type TaskOp = extern "C" fn(TaskPtr);
type CpuOp = extern "C" fn(i32);

/// `struct sched_ext_ops`.
#[repr(C)]
pub struct Ops {
    pub init_task: extern "C" fn(TaskPtr, *mut c_void) -> i32,
    pub enable: TaskOp,
    pub set_cpumask: extern "C" fn(TaskPtr, *const CpuMask),
    pub set_weight: extern "C" fn(TaskPtr, u32),
    pub select_cpu: extern "C" fn(TaskPtr, i32, u64) -> i32,
    pub enqueue: extern "C" fn(TaskPtr, u64),
    pub dispatch: extern "C" fn(i32, TaskPtr),
    pub running: TaskOp,
    pub tick: TaskOp,
    /// Never called here: no program yields.
    pub yields: *const c_void,
    pub stopping: extern "C" fn(TaskPtr, bool),
    pub update_idle: extern "C" fn(i32, bool),
    pub disable: TaskOp,
    pub cpu_online: CpuOp,
    pub cpu_offline: CpuOp,
    pub cgroup_init: extern "C" fn(*mut c_void, *mut c_void) -> i32,
    pub cgroup_exit: extern "C" fn(*mut c_void),
    pub cgroup_set_weight: extern "C" fn(*mut c_void, u32),
    pub cgroup_set_bandwidth: extern "C" fn(*mut c_void, u64, u64, u64),
    pub cgroup_move: extern "C" fn(TaskPtr, *mut c_void, *mut c_void),
    pub init: extern "C" fn() -> i32,
    pub exit: extern "C" fn(*mut c_void),
    /// Never called here: there is no report.
    pub dump: [*const c_void; 3],
    pub flags: u64,
    pub timeout_ms: u32,
    pub name: *const std::ffi::c_char,
}

pub const ENQ_WAKEUP: u64 = 1;
pub const ENQ_LAST: u64 = 1 << 41;
pub const KICK_PREEMPT: u64 = 2;
pub const WAKE_SYNC: u64 = 16;
pub const DSQ_GLOBAL: u64 = 1 << 63 | 1;
pub const DSQ_LOCAL_ON: u64 = 3 << 62;
pub const TASK_QUEUED: u32 = 1;

unsafe extern "C" {
    pub static powerpack_ops: Ops;
}

/// Sizes that the C side lays out from the same fields.
const _: () = {
    assert!(size_of::<SchedExtEntity>() == 24);
    assert!(size_of::<TaskStruct>() == 96);
    assert!(size_of::<Ops>() == 25 * 8 + 24);
};
