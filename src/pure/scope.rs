//! Which CPUs a task is for (`scope.h`).

use super::*;

#[test]
fn what_is_packed_stacks_on_its_waker() {
    let (packing, active) = (packing(4), intf::pp_scope_PP_SCOPE_ACTIVE);
    let (energy, packed) =
        (pp_policy { whole_groups: 1, ..packing }, intf::pp_scope_PP_SCOPE_PACKED);
    let stacks = |policy, scope, groups: bool| native_stacks(policy, scope, groups.into(), 0) == 1;
    assert!(stacks(&packing, active, false) && !stacks(&packing, packed, true));
    assert!(stacks(&energy, packed, true) && !stacks(&energy, active, true), "it may overlap");
    assert!(stacks(&energy, active, false), "without groups it is packing");
    assert!(!stacks(&pp_policy { sync_stacks: 0, ..packing }, active, false));
}

#[test]
fn nothing_stacks_on_a_waker_that_runs_on() {
    let stacks =
        |runs_on| native_stacks(&packing(4), intf::pp_scope_PP_SCOPE_ACTIVE, 0, runs_on) == 1;
    assert!(stacks(20_000) && !stacks(20_001));
    let expected = |ran: &[u64]| ran.iter().fold(0, |known, &ran| native_runs_on(known, ran));
    assert!(stacks(expected(&[3000; 100])), "a system call or two");
    assert!(!stacks(expected(&[100_000])), "at once");
    assert!(!stacks(expected(&[&[100_000][..], &[3000; 9][..]].concat().repeat(10))), "one in ten");
    assert!(stacks(expected(&[&[100_000][..], &[3000; 20][..]].concat())), "once");
}

#[test]
fn a_word_of_the_user_goes_before_capacity_and_capacity_before_size() {
    let (packing, small) = (packing(4), pp_policy { small_util: 205, ..packing(4) });
    let spread = pp_policy { all_active: 1, min_kind: 2, ..packing };
    let energy = pp_policy { whole_groups: 1, ..packing };
    let need = Need::default();
    let short = Need { is_short: 1, ..need };
    let (pack, at_once, efficient) = (
        Need { workload: intf::pp_workload_PP_WORKLOAD_PACK, ..need },
        Need { workload: intf::pp_workload_PP_WORKLOAD_SPREAD, ..need },
        Need { workload: intf::pp_workload_PP_WORKLOAD_EFFICIENT, util: 1000, kind: 2, ..need },
    );
    let kind = |kind| intf::pp_scope_PP_SCOPE_KIND + kind;
    for (policy, need, scope) in [
        (packing, need, intf::pp_scope_PP_SCOPE_ACTIVE),
        (packing, short, intf::pp_scope_PP_SCOPE_ACTIVE),
        (energy, short, intf::pp_scope_PP_SCOPE_PACKED),
        (energy, need, intf::pp_scope_PP_SCOPE_ACTIVE),
        (energy, Need { kind: 1, ..short }, kind(1)),
        (packing, pack, intf::pp_scope_PP_SCOPE_ACTIVE),
        (spread, pack, intf::pp_scope_PP_SCOPE_PACKED),
        (packing, at_once, intf::pp_scope_PP_SCOPE_USABLE),
        (packing, efficient, intf::pp_scope_PP_SCOPE_EFFICIENT),
        (small, Need { util: 205, ..need }, intf::pp_scope_PP_SCOPE_ACTIVE),
        (small, Need { util: 206, ..need }, intf::pp_scope_PP_SCOPE_USABLE),
        (small, Need { util: 206, ..pack }, intf::pp_scope_PP_SCOPE_ACTIVE),
        (packing, Need { kind: 1, ..need }, kind(1)),
        (spread, Need { kind: 1, ..need }, kind(2)),
        (spread, Need { kind: 1, ..pack }, kind(1)),
    ] {
        assert_eq!(native_scope_of(&policy, &need), scope);
    }
}

#[test]
fn the_active_set_grows_for_what_is_to_run_on_it() {
    let off = |scope, on_surplus: bool| native_is_off_demand(scope, on_surplus.into()) == 1;
    let spilled = [intf::pp_scope_PP_SCOPE_ACTIVE, intf::pp_scope_PP_SCOPE_PACKED];
    assert!(spilled.iter().all(|&scope| !off(scope, false) && !off(scope, true)));
    let at_home = [intf::pp_scope_PP_SCOPE_USABLE, intf::pp_scope_PP_SCOPE_KIND + 1];
    assert!(at_home.iter().all(|&scope| !off(scope, false) && off(scope, true)));
    assert!([false, true].into_iter().all(|on| off(intf::pp_scope_PP_SCOPE_EFFICIENT, on)));
}
