//! Wake-ups as kernels report them.

use super::*;

const US: u64 = 1000;

fn task(name: &str) -> Task {
    Task { pid: 7, name: name.into() }
}

fn hrtimer(function: &str) -> What {
    What::Hrtimer(function.into())
}

fn wheel(function: &str, work: Option<&str>) -> What {
    What::Timer { function: function.into(), work: work.map(str::to_owned) }
}

fn numbered(nr: u32, name: &str) -> What {
    What::Interrupt(Interrupt::Numbered { nr, name: name.into() })
}

fn runs(name: &str, waker: &str) -> What {
    What::Runs(task(name), Waker::Task(waker.into()))
}

const TIMER: What = What::Interrupt(Interrupt::Timer);
const RESCHEDULE: What = What::Interrupt(Interrupt::Reschedule);
const SLEEPS: What = What::Sleeps(1);

/// What `events`, 10 us apart, have woken the CPU for, after it fell asleep and before it does
/// again.
fn texts(events: impl IntoIterator<Item = What>) -> Vec<String> {
    let mut wakeups = Wakeups::new(Some(0));
    let events = [SLEEPS].into_iter().chain(events).chain([SLEEPS]);
    for (at, what) in events.enumerate() {
        wakeups.take(Event { now_ns: at as u64 * 10 * US, what });
    }
    let counts = wakeups.counts();
    counts.into_iter().map(|(cause, times)| format!("{times} {cause}")).collect()
}

#[test]
fn a_task_that_a_timer_wakes_is_named_whichever_comes_first() {
    let wakes = || What::Wakes(task("load"));
    let expected = ["1 task load (7), timer hrtimer_wakeup"];
    let runs = || What::Runs(task("load"), Waker::Interrupt);
    // HLT: the interrupt is served inside of the idle state.
    assert_eq!(texts([TIMER, hrtimer("hrtimer_wakeup"), wakes(), What::Leaves, runs()]), expected);
    // MWAIT, WFI: it is served when the state has been left.
    assert_eq!(texts([What::Leaves, TIMER, hrtimer("hrtimer_wakeup"), wakes(), runs()]), expected);
    // arm64: the timer's is an interrupt with a number.
    let timer = numbered(11, "arch_timer");
    assert_eq!(texts([What::Leaves, timer, hrtimer("hrtimer_wakeup"), wakes(), runs()]), expected);
}

#[test]
fn a_task_that_is_put_elsewhere_has_woken_the_cpu_too() {
    let events = [TIMER, hrtimer("hrtimer_wakeup"), What::Wakes(task("load")), What::Leaves];
    assert_eq!(texts(events), ["1 task load (7), timer hrtimer_wakeup; it ran on another CPU"]);
}

#[test]
fn a_tick_is_named_by_the_timer_that_it_was_for() {
    let tick = || hrtimer("tick_nohz_handler");
    assert_eq!(texts([TIMER, tick(), What::Softirq(9), What::Leaves]), ["1 tick"]);
    assert_eq!(
        texts([TIMER, tick(), What::Softirq(1), wheel("neigh_periodic", None), What::Leaves]),
        ["1 timer neigh_periodic"]
    );
    let delayed = wheel("delayed_work_timer_fn", Some("vmstat_update"));
    let worker = || What::Wakes(task("kworker/3:1"));
    let events = [TIMER, tick(), delayed, worker(), What::Leaves, runs("kworker/3:1", "swapper/3")];
    assert_eq!(texts(events), ["1 task kworker/3:1 (7), timer vmstat_update"]);
    // Another timer was due before it: that one has woken the CPU.
    let events = [TIMER, hrtimer("hrtimer_wakeup"), wheel("neigh_periodic", None), What::Leaves];
    assert_eq!(texts(events), ["1 timer hrtimer_wakeup"]);
    assert_eq!(texts([TIMER, What::Leaves]), ["1 timer interrupt, with nothing due"]);
}

#[test]
fn the_first_interrupt_decides() {
    let second = [numbered(24, "virtio0-input.0"), TIMER, hrtimer("hrtimer_wakeup"), What::Leaves];
    assert_eq!(texts(second), ["1 interrupt 24 virtio0-input.0"]);
    let second = [RESCHEDULE, What::Leaves, TIMER, hrtimer("hrtimer_wakeup")];
    assert_eq!(texts(second), ["1 reschedule interrupt, with no task to run"]);
}

#[test]
fn interrupts_between_cpus_of_arm64_are_numbered_first() {
    let ipi = || [What::Leaves, numbered(1, "IPI")];
    assert_eq!(
        texts(ipi().into_iter().chain([RESCHEDULE])),
        ["1 reschedule interrupt, with no task to run"]
    );
    let stop = What::Interrupt(Interrupt::Ipi("CPU stop interrupts".into()));
    assert_eq!(
        texts(ipi().into_iter().chain([stop])),
        ["1 interrupt between CPUs: CPU stop interrupts"]
    );
}

#[test]
fn a_kick_is_the_schedulers_with_a_task_and_without() {
    let kick = "kick of the scheduler";
    assert_eq!(
        texts([What::Kick, RESCHEDULE, What::Leaves]),
        [format!("1 {kick}, with no task to run")]
    );
    // The CPU polled the word that says so: there is no interrupt.
    assert_eq!(texts([What::Kick, What::Leaves]), [format!("1 {kick}, with no task to run")]);
    assert_eq!(
        texts([What::Kick, RESCHEDULE, What::Leaves, runs("load", "bash")]),
        [format!("1 task load (7), woken by bash; {kick}")]
    );
    assert_eq!(
        texts([RESCHEDULE, What::Leaves, runs("load", "bash")]),
        ["1 task load (7), woken by bash"]
    );
}

#[test]
fn a_kick_counts_once_and_not_for_long() {
    let at = |us: u64, what| Event { now_ns: us * US, what };
    let mut wakeups = Wakeups::new(None);
    for event in [
        at(0, What::Kick),
        at(10, RESCHEDULE),
        at(20, SLEEPS),
        at(30, RESCHEDULE),
        at(40, SLEEPS),
        at(50, What::Kick),
        at(2000, RESCHEDULE),
        at(2010, SLEEPS),
    ] {
        wakeups.take(event);
    }
    let (kick, reschedule) = (Cause::Kick, Cause::Reschedule);
    assert_eq!(wakeups.counts(), [(&reschedule, 2), (&kick, 1)]);
}

#[test]
fn what_another_cpu_wants_is_named() {
    let call = || What::Interrupt(Interrupt::CallFunction);
    let function = |name: &str| What::Function(name.into());
    assert_eq!(
        texts([call(), function("flush_tlb_func"), What::Leaves]),
        ["1 function call flush_tlb_func"]
    );
    // To a CPU that polls, none is sent.
    assert_eq!(
        texts([What::Leaves, function("nohz_csd_func"), What::Softirq(7)]),
        ["1 function call nohz_csd_func"]
    );
    assert_eq!(
        texts([call(), What::Leaves, function("sched_ttwu_pending"), runs("load", "bash")]),
        ["1 task load (7), woken by bash"]
    );
    assert_eq!(texts([call(), What::Leaves]), ["1 function call of unknown name"]);
    assert_eq!(texts([What::Interrupt(Interrupt::IrqWork), What::Leaves]), ["1 irq work"]);
}

#[test]
fn what_is_left_is_unknown() {
    assert_eq!(texts([What::Leaves]), ["1 unknown"]);
    assert_eq!(texts([What::Leaves, What::Softirq(3)]), ["1 softirq NET_RX alone"]);
    let by_nobody = What::Runs(task("load"), Waker::Unknown);
    assert_eq!(texts([What::Leaves, by_nobody]), ["1 task load (7), by whom is not known"]);
    let interrupt = What::Runs(task("load"), Waker::Interrupt);
    assert_eq!(
        texts([What::Leaves, interrupt]),
        ["1 task load (7), woken by an interrupt elsewhere"]
    );
}

#[test]
fn what_comes_while_the_cpu_is_awake_has_not_woken_it() {
    let events = [
        RESCHEDULE,
        What::Leaves,
        runs("load", "bash"),
        // The idle task is back, and has not slept yet.
        TIMER,
        hrtimer("hrtimer_wakeup"),
        numbered(24, "virtio0"),
    ];
    assert_eq!(texts(events), ["1 task load (7), woken by bash"]);
}

#[test]
fn polling_is_no_sleep() {
    let mut wakeups = Wakeups::new(Some(0));
    let polls = || What::Sleeps(0);
    let all = [polls(), What::Leaves, polls(), TIMER, What::Leaves, SLEEPS, TIMER, What::Leaves];
    for what in all.into_iter().chain([SLEEPS]) {
        wakeups.take(Event { now_ns: 0, what });
    }
    assert_eq!(wakeups.counts(), [(&Cause::TimerInterrupt, 1)]);
    assert_eq!(wakeups.polled(), 1);
}

#[test]
fn the_most_frequent_cause_is_first() {
    let again = || [TIMER, What::Leaves, SLEEPS];
    let events = [RESCHEDULE, What::Leaves, SLEEPS].into_iter().chain(again()).chain(again());
    assert_eq!(
        texts(events),
        ["2 timer interrupt, with nothing due", "1 reschedule interrupt, with no task to run"]
    );
}
