//! What performance a CPU should have (`freq.h`).

use super::*;

#[test]
fn the_performance_target_is_what_a_cpu_needs_and_no_less_than_pays() {
    assert_eq!(native_perf_target(0, 0, 0, 1000), 550);
    assert_eq!(native_perf_target(600, 100, 0, 1000), 750, "a quarter more");
    assert_eq!(native_perf_target(100, 700, 0, 1000), 875, "what the task needed before");
    assert_eq!(native_perf_target(0, 0, 1, 1000), 1000, "others wait, or nothing is known");
    assert_eq!(native_perf_target(900, 0, 0, 400), 400);
    let wait = |nr, waiting_ns| native_perf_others_wait(nr, waiting_ns) == 1;
    assert!(wait(1, 2 * MS) && !wait(1, 2 * MS - 1) && !wait(0, 9 * MS));
}

#[test]
fn the_performance_target_rises_at_once_and_falls_after_a_hold() {
    let next = |target, current, less_ns| native_perf_next(target, current, 1024, less_ns);
    assert_eq!(next(564, 500, 0), 564);
    assert_eq!(next(563, 500, 0), 500, "less than a sixteenth");
    assert_eq!(next(500, 564, 20 * MS), 500);
    assert_eq!(next(500, 564, 20 * MS - 1), 564, "another may need it soon");
    assert_eq!(next(501, 564, 20 * MS), 564, "less than a sixteenth");
}

#[test]
fn a_step_of_a_small_cpu_is_small() {
    let next = |target, current, less_ns| native_perf_next(target, current, 256, less_ns);
    assert_eq!(next(194, 143, 0), 194, "the load of a small one is followed too");
    assert_eq!(next(158, 143, 0), 143);
    assert_eq!(next(143, 194, 20 * MS), 143);
    assert_eq!(next(256, 250, 0), 256, "a race is not lost for the last step");
}

#[test]
fn an_idle_cpu_comes_down_to_the_floor() {
    let lowers = |target, current, less_ns| native_perf_idle_lowers(target, current, less_ns) == 1;
    assert!(lowers(563, 564, 20 * MS), "however little it is");
    assert!(!lowers(563, 564, 20 * MS - 1) && !lowers(563, 563, 20 * MS));
}
