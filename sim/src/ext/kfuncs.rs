//! The kfuncs that the scheduler calls, and the part of the kernel that they
//! see. They change queues at once, and note all else for the kernel to do when
//! the op returns, which is when the kernel does it too.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::ptr;

use super::dsq::Dsq;
use super::ffi::{CpuMask, DSQ_GLOBAL, DSQ_LOCAL_ON, MAX_CPUS, TaskPtr};
use crate::costs;
use crate::power::FULL;

/// Where the scheduler wants the task that it was asked about.
#[derive(Clone, Copy, Debug)]
pub struct Insertion {
    pub task: TaskPtr,
    pub dsq: u64,
    /// In a queue by virtual time.
    pub vtime: Option<u64>,
}

thread_local! {
    /// The task of a CPU that runs none of ours: there is always a current one.
    // SAFETY: numbers and pointers, for which zeros are valid.
    static IDLE_TASK: TaskPtr = Box::into_raw(Box::new(unsafe { std::mem::zeroed() }));
}

/// What ops and kernel share while an op runs.
#[derive(Default)]
pub struct Shared {
    pub now_ns: u64,
    /// The CPU that the op runs on.
    pub here: usize,
    /// By CPU.
    pub local: Vec<Dsq>,
    /// By id; the scheduler's own.
    pub user: Vec<Option<Dsq>>,
    pub global: Dsq,
    /// By CPU: what runs, null when idle.
    pub running: Vec<TaskPtr>,
    /// By CPU: frequency over the highest, 0..=1024.
    pub freq: Vec<u32>,
    /// By CPU: its performance target, 0..=1024.
    pub perf_target: Vec<u32>,
    /// CPUs whose target has just been set.
    pub retargeted: Vec<usize>,
    pub insertion: Option<Insertion>,
    /// CPU and flags.
    pub kicks: Vec<(usize, u64)>,
    /// Timers that have just been started: key, and in how many ns.
    pub timers: Vec<(u32, u64)>,
    pub error: Option<String>,
}

impl Shared {
    fn dsq(&mut self, id: u64) -> Option<&mut Dsq> {
        if id == DSQ_GLOBAL {
            return Some(&mut self.global);
        }
        if id & DSQ_LOCAL_ON == DSQ_LOCAL_ON {
            return self.local.get_mut((id & !DSQ_LOCAL_ON) as usize);
        }
        let found = self.user.get_mut(id as usize).and_then(Option::as_mut);
        if found.is_none() {
            self.error.get_or_insert(format!("there is no DSQ {id:#x}"));
        }
        found
    }

    /// Carries out an insertion; the CPU whose local queue it was, if it was one.
    pub fn insert(&mut self, insertion: Insertion) -> Option<usize> {
        let Insertion { task, dsq, vtime } = insertion;
        let queue = self.dsq(dsq)?;
        match vtime {
            Some(vtime) => queue.insert(task, vtime),
            None => queue.push_back(task),
        }
        if dsq == DSQ_GLOBAL || dsq & DSQ_LOCAL_ON != DSQ_LOCAL_ON {
            return None;
        }
        let cpu = (dsq & !DSQ_LOCAL_ON) as usize;
        // SAFETY: tasks outlive their being queued.
        unsafe { (*task).cpu = cpu as i32 };
        Some(cpu)
    }
}

thread_local! {
    static SHARED: RefCell<Shared> = RefCell::default();
}

/// Looks at or changes what is shared; not while an op runs.
pub fn shared<T>(f: impl FnOnce(&mut Shared) -> T) -> T {
    SHARED.with_borrow_mut(f)
}

/// Whether the task may run on `cpu`.
pub fn may_run(task: TaskPtr, cpu: usize) -> bool {
    // SAFETY: tasks and their masks outlive their being queued.
    let task = unsafe { &*task };
    if task.migration_disabled > 0 {
        return task.cpu as usize == cpu;
    }
    unsafe { &*task.cpus_ptr }.has(cpu)
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_now() -> u64 {
    shared(|s| s.now_ns)
}

#[unsafe(no_mangle)]
extern "C" fn bpf_get_smp_processor_id() -> u32 {
    shared(|s| s.here as u32)
}

#[unsafe(no_mangle)]
extern "C" fn bpf_get_current_task_btf() -> TaskPtr {
    let current = shared(|s| s.running[s.here]);
    if current.is_null() { IDLE_TASK.with(|&task| task) } else { current }
}

#[unsafe(no_mangle)]
extern "C" fn bpf_cpumask_first(mask: *const CpuMask) -> u32 {
    // SAFETY: a task's mask.
    unsafe { &*mask }.first().unwrap_or(MAX_CPUS) as u32
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_create_dsq(id: u64, _node: i32) -> i32 {
    shared(|s| {
        let id = id as usize;
        if s.user.len() <= id {
            s.user.resize_with(id + 1, || None);
        }
        s.user[id] = Some(Dsq::default());
        0
    })
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_dsq_nr_queued(id: u64) -> i32 {
    costs::uses_dsq();
    shared(|s| s.dsq(id).map_or(-1, |queue| queue.len() as i32))
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_dsq_move_to_local(id: u64, _enq_flags: u64) -> bool {
    costs::uses_dsq();
    shared(|s| {
        let here = s.here;
        let taken = s.dsq(id).and_then(|queue| queue.take(|task| may_run(task, here)));
        let Some(task) = taken else { return false };
        s.insert(Insertion { task, dsq: DSQ_LOCAL_ON | here as u64, vtime: None });
        true
    })
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_dsq_insert(task: TaskPtr, id: u64, slice_ns: u64, _enq_flags: u64) {
    // SAFETY: the task that the op was called with.
    unsafe { (*task).scx.slice_ns = slice_ns };
    note(Insertion { task, dsq: id, vtime: None });
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_dsq_insert_vtime(
    task: TaskPtr,
    id: u64,
    slice_ns: u64,
    vtime: u64,
    _enq_flags: u64,
) {
    // SAFETY: the task that the op was called with.
    unsafe {
        (*task).scx.slice_ns = slice_ns;
        (*task).scx.dsq_vtime = vtime;
    }
    note(Insertion { task, dsq: id, vtime: Some(vtime) });
}

fn note(insertion: Insertion) {
    costs::uses_dsq();
    shared(|s| {
        if s.insertion.replace(insertion).is_some() {
            s.error.get_or_insert("a task was inserted twice".into());
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn __COMPAT_scx_bpf_dsq_peek(id: u64) -> TaskPtr {
    costs::uses_dsq();
    shared(|s| s.dsq(id).and_then(|queue| queue.first()).unwrap_or(ptr::null_mut()))
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_kick_cpu(cpu: i32, flags: u64) {
    shared(|s| {
        if cpu < 0 || cpu as usize >= s.local.len() {
            s.error.get_or_insert(format!("kicked CPU {cpu}, which does not exist"));
            return;
        }
        s.kicks.push((cpu as usize, flags));
    });
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_task_set_slice(task: TaskPtr, slice_ns: u64) {
    // SAFETY: a running task.
    unsafe { (*task).scx.slice_ns = slice_ns };
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_cpuperf_cur(cpu: i32) -> u32 {
    shared(|s| s.freq[cpu as usize])
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_cpuperf_set(cpu: i32, target: u32) {
    shared(|s| {
        if target > FULL as u32 {
            s.error.get_or_insert(format!("performance target {target} for CPU {cpu}"));
            return;
        }
        s.perf_target[cpu as usize] = target;
        s.retargeted.push(cpu as usize);
    });
}

#[unsafe(no_mangle)]
extern "C" fn sim_error(format: *const c_char) {
    // SAFETY: a string constant of the scheduler.
    let text = unsafe { CStr::from_ptr(format) }.to_string_lossy().into_owned();
    shared(|s| {
        s.error.get_or_insert(text);
    });
}

/// `struct sim_dsq_walk`.
#[repr(C)]
struct Walk {
    id: u64,
    vtime: i64,
    seq: i64,
    set_vtime: u64,
    begun: bool,
    reverse: bool,
}

#[unsafe(no_mangle)]
extern "C" fn sim_dsq_walk_next(walk: *mut Walk) -> TaskPtr {
    costs::uses_dsq();
    // SAFETY: on the caller's stack.
    let walk = unsafe { &mut *walk };
    let last = walk.begun.then_some((walk.vtime, walk.seq));
    let next = shared(|s| s.dsq(walk.id).and_then(|queue| queue.after(last, walk.reverse)));
    let Some((key, task)) = next else { return ptr::null_mut() };
    (walk.vtime, walk.seq) = key;
    walk.begun = true;
    task
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_dsq_move(walk: *mut Walk, task: TaskPtr, id: u64, _enq_flags: u64) -> bool {
    move_task(walk, task, id, None)
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_dsq_move_set_vtime(walk: *mut Walk, vtime: u64) {
    // SAFETY: on the caller's stack.
    unsafe { (*walk).set_vtime = vtime };
}

#[unsafe(no_mangle)]
extern "C" fn scx_bpf_dsq_move_vtime(
    walk: *mut Walk,
    task: TaskPtr,
    id: u64,
    _enq_flags: u64,
) -> bool {
    // SAFETY: on the caller's stack, and a task in a queue.
    let vtime = unsafe {
        (*task).scx.dsq_vtime = (*walk).set_vtime;
        (*walk).set_vtime
    };
    move_task(walk, task, id, Some(vtime))
}

fn move_task(walk: *mut Walk, task: TaskPtr, id: u64, vtime: Option<u64>) -> bool {
    // SAFETY: on the caller's stack.
    let from = unsafe { &*walk }.id;
    shared(|s| {
        let taken = s.dsq(from).and_then(|queue| queue.take(|other| other == task));
        let Some(task) = taken else { return false };
        s.insert(Insertion { task, dsq: id, vtime });
        true
    })
}

#[unsafe(no_mangle)]
extern "C" fn sim_timer_start(key: u32, ns: u64) {
    shared(|s| s.timers.push((key, ns)));
}
