//! What performance a CPU should have (`freq.h`).

use super::*;

#[test]
fn the_performance_target_is_what_a_cpu_needs_and_no_less_than_pays() {
    let target = |cpu_util, task_util, race, capacity| {
        native_perf_target(cpu_util, task_util, race, capacity, 550)
    };
    assert_eq!(target(0, 0, 0, 1000), 550);
    assert_eq!(target(600, 100, 0, 1000), 675, "an eighth more");
    assert_eq!(target(100, 800, 0, 1000), 900, "what the task needed before");
    assert_eq!(target(0, 0, 1, 1000), 1000, "others wait, or nothing is known");
    assert_eq!(target(900, 0, 0, 400), 400);
    let wait = |nr, waiting_ns| native_perf_others_wait(nr, waiting_ns) == 1;
    assert!(wait(1, 4 * MS) && !wait(1, 4 * MS - 1) && !wait(0, 9 * MS));
}

#[test]
fn a_task_is_known_that_is_old_enough_and_has_slept() {
    let known = |age_ms, nr_runs| native_perf_known(age_ms * MS, nr_runs) == 1;
    assert!(known(128, 4) && !known(127, 4) && !known(9000, 3));
}

#[test]
fn the_performance_target_rises_at_once_and_falls_to_what_was_needed_lately() {
    let next = |target, current, peak| native_perf_next(target, current, 1024, peak);
    assert_eq!(next(564, 500, 564), 564);
    assert_eq!(next(563, 500, 563), 500, "less than a sixteenth");
    assert_eq!(next(400, 564, 500), 500);
    assert_eq!(next(400, 564, 501), 564, "less than a sixteenth");
}

#[test]
fn a_step_of_a_small_cpu_is_small() {
    let next = |target, current, peak| native_perf_next(target, current, 256, peak);
    assert_eq!(next(194, 143, 194), 194, "the load of a small one is followed too");
    assert_eq!(next(158, 143, 158), 143);
    assert_eq!(next(143, 194, 143), 143);
    assert_eq!(next(256, 250, 256), 256, "a race is not lost for the last step");
}

#[test]
fn what_was_needed_is_remembered_for_one_to_two_windows() {
    let mut peaks = pp_perf_peaks { begun_ns: 0, now: 0, before: 0, reserved: 0 };
    let mut note = |target, ms| native_perf_note(&mut peaks, target, ms * MS);
    assert_eq!(note(700, 1000), 700, "long after the last window");
    assert_eq!(note(500, 1063), 700);
    assert_eq!(note(400, 1064), 700, "in the window before");
    assert_eq!(note(300, 1128), 400);
    assert_eq!(native_perf_peak(&peaks, 1192 * MS - 1), 400);
    assert_eq!(native_perf_peak(&peaks, 1192 * MS), 300);
    assert_eq!(native_perf_peak(&peaks, 1256 * MS), 0, "a CPU that has been idle since");
    let mut later = peaks;
    assert_eq!(native_perf_note(&mut later, 100, 1255 * MS), 300);
    assert_eq!(native_perf_note(&mut peaks, 100, 1256 * MS), 100);
}
