//! Which kind of core is for a task (`scope.h`, `policy.h`).

use super::*;

#[test]
fn a_task_fits_the_smallest_kind_with_a_margin() {
    let fit = |util, min, max| native_fit_kind(util, min, max, &[400, 700, 1024, 0], 3);
    assert_eq!([0, 320, 321, 560, 561, 1024].map(|util| fit(util, 0, 1024)), [0, 0, 1, 1, 2, 2]);
    assert_eq!((fit(10, 400, 1024), fit(10, 401, 1024)), (0, 1), "uclamp_min, without a margin");
    assert_eq!((fit(1000, 0, 400), fit(1000, 800, 300)), (0, 0), "uclamp_max has the last word");
    assert_eq!(native_fit_kind(1024, 1024, 1024, &[1024, 0, 0, 0], 1), 0);
}

#[test]
fn a_clamp_to_what_the_smallest_cores_have_keeps_a_task_there() {
    let kept = |uclamp_max| native_is_kept_small(uclamp_max, 400, 2) == 1;
    assert!(kept(300) && kept(400) && !kept(401));
}

#[test]
fn a_task_that_is_behind_fits_the_next_kind_and_none_is_larger_than_the_largest() {
    let kinds = [400, 700, 1024, 0];
    let kind = |capacity| native_fit_kind(native_util_behind(capacity, 1024), 0, 1024, &kinds, 3);
    assert_eq!([400, 700].map(kind), [1, 2]);
    assert_eq!(native_util_behind(1024, 1024), 0, "it is what it is");
    assert_eq!(
        [299, 300, 399, 400, 500].map(|est| native_est_behind(est, 400)),
        [299, 400, 400, 400, 500]
    );
}

#[test]
fn what_hardly_sleeps_or_would_not_at_full_speed_is_behind() {
    let behind = |run_ms, period_ms, freq| native_is_behind(run_ms * MS, period_ms * MS, freq);
    assert_eq!([6, 7, 30].map(|run_ms| behind(run_ms, 16, 0)), [0, 1, 1]);
    assert_eq!([511, 512, 1024].map(|freq| behind(14, 32, freq)), [0, 0, 1], "14 ms at full speed");
    assert_eq!([511, 512].map(|freq| behind(14, 16, freq)), [1, 1], "it sleeps for an eighth");
    assert_eq!([895, 896].map(|freq| behind(16, 32, freq)), [0, 1], "14 ms at full speed");
    assert_eq!(behind(10, 0, 0), 0, "it has not woken before");
    assert_eq!(behind(1, 1, 0), 0, "a short run");
}

#[test]
fn any_larger_kind_is_better_than_one_that_is_too_small() {
    let kind = |kind| intf::pp_scope_PP_SCOPE_KIND + kind;
    assert_eq!(native_larger_scope(kind(3), 0), kind(1), "of four kinds");
    assert_eq!(native_larger_scope(kind(2), 1), kind(2));
    assert_eq!(native_larger_scope(kind(1), 0), kind(1), "of two");
    assert_eq!(native_larger_scope(kind(1), 3), kind(1), "beyond the ceiling");
}
