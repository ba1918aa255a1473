use super::verdict::Finding;
use super::*;

const KIND_SHARE: f64 = 0.14;
const MODES: [Mode; 3] = [Mode::Packing, Mode::Energy, Mode::Spread];

fn kind() -> Kind {
    Kind::of(false, KIND_SHARE)
}

fn proof() -> Proof {
    Proof::new(MODES.to_vec(), Mode::Packing, 1)
}

/// A block in which packing takes 1.1, energy 1 and spread 1.5 W, times a little that differs from block to block.
fn block(plan: Plan, nth: u64) -> Block {
    let power_w = match plan.mode {
        Mode::Packing => 1.1,
        Mode::Energy => 1.0,
        _ => 1.5,
    };
    let little = 1.0 + (nth * 7 % 11) as f64 / 1000.0;
    let joules = 5.0 * power_w * little;
    Block {
        mode: plan.mode,
        seconds: 5.0,
        joules,
        work_share: KIND_SHARE,
        capacity: 4.0,
        wake_ups: 0,
    }
}

/// One that was found.
pub fn verdict() -> Verdict {
    let mut proof = proof();
    settle(&mut proof, 7);
    proof.verdicts().next().unwrap().clone()
}

/// Runs until there is a verdict; how many blocks that took.
fn settle(proof: &mut Proof, now_s: u64) -> u64 {
    (1..=1000)
        .find(|&nth| {
            let plan = proof.plan(Some(kind()), true, now_s);
            proof.take(block(plan, nth), now_s) == Some(News::Found)
        })
        .expect("a verdict")
}

#[test]
fn a_round_has_each_mode_once_and_the_next_one_reverses_it() {
    let mut proof = proof();
    let mut round = || -> Vec<Mode> {
        MODES
            .iter()
            .map(|_| {
                let plan = proof.plan(Some(kind()), true, 0);
                assert!(plan.is_comparison && plan.block_looks == Some(LOOKS_COMPARED));
                proof.take(block(plan, 0), 0);
                plan.mode
            })
            .collect()
    };
    let (first, mut second) = (round(), round());
    assert!(MODES.iter().all(|mode| first.contains(mode)), "{first:?}");
    second.reverse();
    assert_eq!(first, second);
}

#[test]
fn the_one_that_takes_least_is_kept_with_its_evidence() {
    let mut proof = proof();
    assert_eq!(proof.sentence(Some(kind())), "not compared yet at 10-20 % load");
    let blocks = settle(&mut proof, 7);
    assert_eq!(blocks, 12, "four rounds: the difference is large, and the noise small");
    let verdict = proof.verdicts().next().unwrap();
    assert_eq!((verdict.mode, verdict.finding, verdict.at_s), (Mode::Energy, Finding::Least, 7));
    assert_eq!(verdict.margins.len(), 2);
    assert!((verdict.level.power_w - 1.0).abs() < 0.02, "{verdict:?}");
    let said = proof.sentence(Some(kind()));
    let began =
        "energy: 8.8 % less than packing (4 pairs), 33.2 % less than spread at 10-20 % load";
    assert_eq!(said, format!("{began}, 4 pairs, p < 0.01"));
    let plan = proof.plan(Some(kind()), true, 8);
    assert_eq!((plan.mode, plan.is_comparison), (Mode::Energy, false));
}

#[test]
fn what_differs_too_little_leaves_the_models_choice() {
    let mut proof = proof();
    let settled = (0..1000).any(|nth| {
        let plan = proof.plan(Some(kind()), true, 0);
        let joules = 5.0 + (nth * 7 % 11) as f64 / 100.0;
        proof.take(Block { joules, ..block(plan, nth) }, 0).is_some()
    });
    assert!(settled);
    let verdict = proof.verdicts().next().unwrap();
    assert_eq!((verdict.finding, verdict.mode), (Finding::Equal, Mode::Packing), "{verdict:?}");
}

#[test]
fn without_leave_to_compare_the_choice_just_runs() {
    let mut proof = proof();
    let idle = Plan { mode: Mode::Packing, block_looks: None, is_comparison: false };
    assert_eq!(proof.plan(None, true, 0), idle, "the load is not known");
    assert_eq!(proof.plan(Some(kind()), false, 0), idle);
    assert_eq!(proof.plan(Some(Kind::of(false, 0.001)), true, 0), idle, "nothing runs");
    proof.hold_off();
    proof.plan(Some(kind()), true, 0);
    let held_off = proof.sentence(Some(kind()));
    proof.hold_off();
    let plans: Vec<_> = (0..LOOKS_HELD_OFF).map(|_| proof.plan(Some(kind()), true, 0)).collect();
    assert!(plans[..plans.len() - 1].iter().all(|&plan| plan == idle));
    assert_eq!(
        held_off,
        "not compared at 10-20 % load until tasks have not waited for long for a minute"
    );
    assert!(plans.last().unwrap().is_comparison, "a minute is over");
}

#[test]
fn a_round_counts_whole_and_of_one_load_or_not_at_all() {
    let mut proof = proof();
    let mut run = |share: f64| {
        let plan = proof.plan(Some(kind()), true, 0);
        proof.take(Block { work_share: share, ..block(plan, 0) }, 0);
        proof.cases[&kind()].nr_rounds()
    };
    assert_eq!([0.14, 0.14, 0.16].map(&mut run), [0, 0, 1]);
    assert_eq!([0.14, 0.14, 0.17].map(&mut run), [1, 1, 1], "more work");
    assert_eq!([0.21, 0.21, 0.21].map(&mut run), [1, 1, 1], "another kind of load");
    assert_eq!([0.14, 0.14, 0.0].map(&mut run), [1, 1, 1], "no work");
    run(0.14);
    proof.drop_block();
    assert!(proof.round.is_none());
    let other = Kind::of(true, KIND_SHARE);
    proof.plan(Some(kind()), true, 0);
    proof.plan(Some(other), true, 0);
    assert_eq!(proof.round.as_ref().unwrap().kind, other);
}

#[test]
fn a_load_that_is_never_steady_is_given_up_for_a_day() {
    let mut proof = proof();
    let mut blocks = 0;
    while proof.plan(Some(kind()), true, 0).is_comparison {
        let plan = proof.plan(Some(kind()), true, 0);
        blocks += 1;
        let work_share = KIND_SHARE + 0.03 * f64::from(blocks % 2);
        proof.take(Block { work_share, ..block(plan, 0) }, 0);
        assert!(blocks <= 1000, "it never ends");
    }
    assert_eq!(proof.sentence(Some(kind())), "not steady enough to be compared at 10-20 % load");
    assert!(!proof.plan(Some(kind()), true, FRESH_S - 1).is_comparison);
    assert!(proof.plan(Some(kind()), true, FRESH_S).is_comparison);
}

#[test]
fn it_looks_again_after_a_day_and_keeps_its_choice_meanwhile() {
    let mut proof = proof();
    settle(&mut proof, 0);
    assert!(!proof.plan(Some(kind()), true, FRESH_S - 1).is_comparison);
    assert_eq!(proof.plan(Some(kind()), false, FRESH_S).mode, Mode::Energy);
    assert!(proof.plan(Some(kind()), true, FRESH_S).is_comparison);
    proof.hold_off();
    assert_eq!(proof.plan(Some(kind()), true, FRESH_S).mode, Mode::Energy);
    assert_eq!(
        proof.verdicts().count(),
        0,
        "what is being compared again is not to be kept as it was"
    );
}

/// Watches the choice, which takes so much; how many blocks until it is compared again, of at most `max`.
fn watch(proof: &mut Proof, power_w: f64, max: u32) -> Option<u32> {
    (1..=max).find(|_| {
        let plan = proof.plan(Some(kind()), true, 0);
        assert_eq!((plan.mode, plan.is_comparison), (Mode::Energy, false));
        let block = Block { joules: 5.0 * power_w, ..block(plan, 0) };
        proof.take(block, 0) == Some(News::Contradicted)
    })
}

#[test]
fn what_contradicts_is_compared_anew_and_ever_more_patiently() {
    let mut proof = proof();
    settle(&mut proof, 0);
    assert_eq!(watch(&mut proof, 1.05, 20), None);
    assert_eq!(watch(&mut proof, 1.5, 20), Some(3), "90 s");
    settle(&mut proof, 0);
    assert_eq!(watch(&mut proof, 1.5, 5), None);
    assert_eq!(watch(&mut proof, 1.05, 1), None, "not in a row");
    assert_eq!(watch(&mut proof, 1.5, 20), Some(6));
}

#[test]
fn what_was_kept_is_taken_over_and_what_makes_no_sense_is_not() {
    let mut first = proof();
    settle(&mut first, 5);
    let kept: Vec<Verdict> = first.verdicts().cloned().collect();
    let mut second = proof();
    second.recall(kept.clone());
    assert_eq!(second.plan(Some(kind()), true, 6).mode, Mode::Energy);
    assert_eq!(second.verdicts().cloned().collect::<Vec<_>>(), kept);
    let mut other = Proof::new(vec![Mode::Packing, Mode::Spread], Mode::Packing, 0);
    other.recall(kept);
    assert_eq!(other.verdicts().count(), 0, "energy is none of its modes");
    assert!(second.plan(Some(kind()), true, 4).is_comparison, "kept by a clock that was ahead");
}
