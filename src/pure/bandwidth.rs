//! Budgets of cgroups: `src/bpf/bandwidth.h`.

use proptest::prelude::*;

use super::{
    CpuMax, FULL, MS, native_budget_excess, native_budget_refill, native_grant,
    native_is_other_limit, native_periods_over, native_releases, native_util_decay,
    native_util_run,
};

#[test]
fn a_limit_is_another_one_by_any_of_its_parts() {
    let cpu_max =
        |[quota_ns, period_ns, burst_ns]: [u64; 3]| CpuMax { quota_ns, period_ns, burst_ns };
    let other = |limit, max| native_is_other_limit(&cpu_max(limit), &cpu_max(max)) == 1;
    assert!(!other([20, 100, 5], [20, 100, 5]));
    for max in [[30, 100, 5], [20, 50, 5], [20, 100, 0], [0, 100, 5]] {
        assert!(other([20, 100, 5], max), "{max:?}");
    }
    assert!(other([0, 100, 5], [20, 100, 5]) && !other([0, 100, 5], [0, 50, 0]), "there is none");
}

#[test]
fn a_budget_is_refilled_to_quota_and_burst_and_pays_debts() {
    assert_eq!(native_budget_refill(0, 1, 20, 0), 20);
    assert_eq!(native_budget_refill(15, 1, 20, 0), 20, "what is left of a period is lost");
    assert_eq!(native_budget_refill(15, 1, 20, 10), 30, "but for the burst");
    assert_eq!(native_budget_refill(-50, 1, 20, 10), -30);
    assert_eq!(native_budget_refill(-50, 3, 20, 0), 10);
    assert_eq!(native_budget_refill(25, 1, 20, 0), 20, "what was given back late is not kept");
    // The longest that the kernel takes, after a year of one-millisecond periods.
    let max = (1 << 44) * 1000;
    assert_eq!(native_budget_refill(-1, 31_536_000_000, max as u64, 0), max);
    assert_eq!(native_budget_excess(25, 20, 0), 5);
    assert_eq!(native_budget_excess(-25, 20, 0), 0);
}

#[test]
fn periods_are_counted_from_their_begin() {
    assert_eq!(native_periods_over(1000, 100, 1099), 0);
    assert_eq!(native_periods_over(1000, 100, 1100), 1);
    assert_eq!(native_periods_over(1000, 100, 1350), 3);
    assert_eq!(native_periods_over(1000, 100, 999), 0, "the clock of another CPU");
    assert_eq!(native_periods_over(1000, 0, 9999), 0, "a place that is being filled");
}

#[test]
fn what_is_left_of_a_budget_is_reserved_and_released_for() {
    assert_eq!(native_grant(3, 5), 3);
    assert_eq!(native_grant(8, 5), 5);
    assert_eq!(native_grant(-8, 5), 0);
    assert_eq!([-1, 0, 1, 12 * MS as i64].map(|budget| native_releases(budget)), [0, 0, 1, 3]);
}

proptest! {
    #[test]
    fn the_average_stays_in_range(
        util in 0..=FULL, steps in prop::collection::vec((any::<bool>(), 0..200 * MS), 1..50),
        capacity in 1..=1024u32,
    ) {
        let mut util = util;
        for (runs, dt) in steps {
            let before = util;
            util = if runs { native_util_run(util, dt, capacity) } else { native_util_decay(util, dt) };
            prop_assert!(util <= FULL);
            let bound = capacity << 20;
            prop_assert!(!runs || util <= before.max(bound) && util >= before.min(bound));
        }
    }

    #[test]
    fn the_average_converges(util in 0..=FULL, capacity in 1..=1024u32) {
        let settled = native_util_run(util, 2000 * MS, capacity);
        prop_assert!(settled.abs_diff(capacity << 20) <= 1);
    }
}
