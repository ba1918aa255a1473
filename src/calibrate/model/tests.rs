//! With made-up machines, whose blocks take what their figures say.

use proptest::prelude::*;

use super::super::file::{About, text};
use super::super::plan::blocks;
use super::super::subject::{IdleState, Kind};
use super::*;
use crate::machine::layout::Group;
use powerpack_sim::Machine;

/// What a group's CPUs are: kind, threads, package, LLC, and how many cores.
type Shape = (usize, usize, usize, usize, usize);

fn subject(shapes: &[Shape], idle: &[(&str, f64, f64)], nr_khz: u64) -> Subject {
    let mut cpu = 0;
    let groups = shapes.iter().map(|&(kind, threads, package, llc, cores)| {
        let cores = (0..cores).map(|_| {
            cpu += threads;
            (cpu - threads..cpu).collect()
        });
        Group {
            kind,
            capacity: 300 + 300 * kind,
            threads,
            package,
            node: 0,
            llc,
            cores: cores.collect(),
        }
    });
    let state = |(index, (name, residency_us, exit_us)): (usize, &(&str, f64, f64))| IdleState {
        name: (*name).to_owned(),
        index,
        residency_us: *residency_us,
        exit_us: *exit_us,
    };
    let idle: Vec<_> = idle.iter().enumerate().map(state).collect();
    Subject::made_up(groups.collect(), |group| Kind {
        capacity: group.capacity,
        threads: group.threads,
        khz: (1..=nr_khz).map(|nth| nth * 400_000).collect(),
        idle: idle.clone(),
    })
}

/// A machine of two kinds in two LLCs, as chromebook2; one of three kinds in one, as a phone; one of two
/// packages of two LLCs and two threads; one without idle states and frequencies; one of two kinds in one LLC
/// that sleep apart.
fn shapes() -> Vec<Subject> {
    let states = [("WFI", 1.0, 1.0), ("off", 3000.0, 500.0), ("cluster-off", 3000.0, 500.0)];
    vec![
        subject(&[(0, 1, 0, 0, 4), (1, 1, 0, 1, 4)], &states, 5),
        subject(&[(0, 1, 0, 0, 4), (1, 1, 0, 0, 3), (2, 1, 0, 0, 1)], &states, 4),
        subject(&[0, 1, 2, 3].map(|llc| (0, 2, llc / 2, llc, 4)), &states[..2], 3),
        subject(&[(0, 1, 0, 0, 4)], &[], 0),
        subject(&[(0, 1, 0, 0, 4), (1, 1, 0, 0, 4)], &states, 5),
    ]
}

/// The truth: a number for each figure, of the size that such a figure has.
fn truth(subject: &Subject, figure: Figure, seed: f64) -> f64 {
    let is_apart = subject.kinds.len() == 2;
    match figure {
        Figure::Floor => 50.0 + 300.0 * seed,
        Figure::Work { kind, khz } => (60.0 + 250.0 * seed) * (1.0 + kind as f64 + khz as f64),
        Figure::Sibling { .. } => 20.0 + 40.0 * seed,
        // The last state before the deepest is of the core alone.
        Figure::Idle { state: 0, .. } => 10.0 + 90.0 * seed,
        Figure::Idle { .. } | Figure::Sleeps { .. } => 0.0,
        Figure::Wake { kind } => 40.0 * (1.0 + kind as f64),
        Figure::WakeBeside { kind } => 15.0 * (1.0 + kind as f64),
        Figure::Group { class } => 30.0 * (1.0 + class as f64) + 50.0 * seed,
        Figure::Llc { .. } if is_apart => 0.0,
        Figure::Llc { .. } => 400.0 + 50.0 * seed,
        Figure::Package => 80.0 + 100.0 * seed,
    }
}

/// What is seen of a block where CPUs do what is asked; those that may sleep do so but for a share.
fn seen(subject: &Subject, block: &Block, seed: f64, noise: f64) -> Seen {
    let mut seen = Seen::default();
    for group in &subject.groups {
        let nr = subject.kinds[group.kind].idle.len();
        for cpu in group.cpus().filter(|_| nr > 0) {
            let mut idle = vec![0.0; nr];
            let deepest = block.limits.get(&cpu).copied().unwrap_or(nr - 1);
            idle[deepest] = if block.busy.contains(&cpu) { 0.0 } else { 0.998 };
            seen.idle.insert(cpu, idle);
            let woken = block.waking.filter(|(other, _)| *other == cpu);
            let per_s = woken.map_or(0.0, |(_, period_ns)| 1e9 / period_ns as f64);
            seen.wakes_per_s.insert(cpu, per_s);
        }
    }
    // Of three kinds in one cache, what is around a core is the cache.
    let around = if subject.kinds.len() == 3 { Around::Llc } else { Around::Group };
    let row = row(subject, block, &seen, around);
    let exact: f64 =
        row.iter().map(|(figure, factor)| factor * truth(subject, *figure, seed)).sum();
    seen.power_mw = exact * (1.0 + noise);
    seen
}

fn found(
    subject: &Subject,
    seed: f64,
    noise: impl Iterator<Item = f64>,
) -> (Model, Vec<(Block, Seen)>) {
    let all = blocks(subject).into_iter().zip(noise);
    let all: Vec<_> = all
        .map(|(block, noise)| {
            let seen = seen(subject, &block, seed, noise);
            (block, seen)
        })
        .collect();
    (find(subject, &all).unwrap(), all)
}

/// Two A15s work, one A7 is kept in its shallowest state, and another is woken.
#[test]
fn a_block_by_hand() {
    let subject = &shapes()[0];
    let block =
        Block { busy: vec![4, 5], limits: [(1, 0)].into(), khz: vec![0, 3], ..Block::default() };
    let mut seen = Seen { wakes_per_s: [(2, 100.0)].into(), ..Seen::default() };
    seen.idle = (0..8).map(|cpu| (cpu, vec![0.0, 0.0, 1.0])).collect();
    seen.idle.insert(1, vec![0.9, 0.0, 0.0]);
    seen.idle.insert(4, vec![0.0; 3]);
    let wanted = [
        (Figure::Floor, 1.0),
        (Figure::Work { kind: 0, khz: 0 }, 0.1),
        (Figure::Work { kind: 1, khz: 3 }, 2.0),
        (Figure::Idle { kind: 0, state: 0 }, 0.9),
        (Figure::WakeBeside { kind: 0 }, 0.1),
        (Figure::Group { class: 0 }, 1.0),
        (Figure::Group { class: 1 }, 1.0),
        (Figure::Package, 1.0),
    ];
    let row = row(subject, &block, &seen, Around::Group);
    assert_eq!(row.len(), wanted.len(), "{row:?}");
    for (figure, factor) in wanted {
        assert!((row[&figure] - factor).abs() < 1e-9, "{figure:?}: {row:?}");
    }
    // Nothing but its deepest state: all sleeps.
    let idle = Block { khz: vec![0, 0], ..Block::default() };
    seen.idle = (0..8).map(|cpu| (cpu, vec![0.0, 0.0, 1.0])).collect();
    let woken = super::row(subject, &idle, &seen, Around::Group);
    assert!((woken[&Figure::Wake { kind: 0 }] - 0.1).abs() < 1e-9 && woken.len() == 2, "{woken:?}");
    seen.wakes_per_s.clear();
    assert_eq!(super::row(subject, &idle, &seen, Around::Group), [(Figure::Floor, 1.0)].into());
}

#[test]
fn a_unit_within_its_error_is_none() {
    let estimate = |value, error| Estimate { value, error };
    let (llc, group) = (Figure::Llc { class: 0 }, Figure::Group { class: 0 });
    let mut figures = BTreeMap::from([
        (Figure::Floor, estimate(0.1, 1.0)),
        (group, estimate(36.0, 2.0)),
        (Figure::Package, estimate(3.0, 2.0)),
        (llc, estimate(-0.6, 2.0)),
    ]);
    assert_eq!(least_known_unit(&figures), Some(llc));
    figures.remove(&llc);
    assert_eq!(least_known_unit(&figures), Some(Figure::Package));
    figures.remove(&Figure::Package);
    assert_eq!(least_known_unit(&figures), None, "the floor is no unit");
}

#[test]
fn the_blocks_tell_all_figures_of_each_machine_apart() {
    for subject in shapes() {
        let (model, _) = found(&subject, 0.5, std::iter::repeat(0.0));
        for (figure, estimate) in &model.figures {
            let truth = truth(&subject, *figure, 0.5);
            assert!((estimate.value - truth).abs() < 1e-6, "{figure:?}: {estimate:?}, not {truth}");
        }
        assert!(model.worst_share < 1e-9);
    }
    // Package and LLC where there are several, and one of both where there are not.
    let has = |subject: &Subject, figure| {
        found(subject, 0.5, std::iter::repeat(0.0)).0.figures.contains_key(&figure)
    };
    let shapes = shapes();
    assert!(has(&shapes[0], Figure::Package) && has(&shapes[0], Figure::Group { class: 1 }));
    assert!(!has(&shapes[0], Figure::Llc { class: 0 }), "each has one group");
    assert!(!has(&shapes[1], Figure::Package) && has(&shapes[1], Figure::Llc { class: 0 }));
    assert!(!has(&shapes[1], Figure::Group { class: 2 }), "a core alone");
    assert!(has(&shapes[2], Figure::Package) && has(&shapes[2], Figure::Sibling { kind: 0 }));
}

#[test]
fn the_file_is_a_machine_of_these_cpus_and_powers() {
    for subject in shapes() {
        let (model, seen) = found(&subject, 0.5, std::iter::repeat(0.0));
        let about = About { lines: vec!["by a test".into()], seen: &seen };
        let text = text(&subject, &model, &about);
        let machine = Machine::parse(&text).unwrap_or_else(|err| panic!("{err:#}\n{text}"));
        let cpus: Vec<usize> = subject.groups.iter().flat_map(Group::cpus).collect();
        assert_eq!(machine.cpus().len(), cpus.len());
        let points = machine.working_points(&machine.cpus()[0]);
        let wanted = truth(&subject, Figure::Work { kind: 0, khz: 0 }, 0.5);
        assert!((points[0].1 - wanted).abs() < 0.01, "{points:?}, not {wanted}\n{text}");
        assert!(machine.kept_awake_mw(&machine.cpus()[0]) > 1.0, "{text}");
    }
}

#[test]
fn a_state_that_takes_no_more_than_the_deepest_is_the_last_of_the_core() {
    let subject = &shapes()[0];
    let (model, seen) = found(subject, 0.5, std::iter::repeat(0.0));
    let text = text(subject, &model, &About { lines: vec![], seen: &seen });
    assert_eq!(text.matches("name = \"off\"").count(), 2, "of both kinds:\n{text}");
    assert_eq!(text.matches("name = \"cluster-off\"").count(), 3, "of package and LLCs:\n{text}");
}

#[test]
fn groups_that_share_a_cache_are_apart_in_the_file_if_they_sleep_apart() {
    let shapes = shapes();
    let file = |subject: &Subject| {
        let (model, seen) = found(subject, 0.5, std::iter::repeat(0.0));
        text(subject, &model, &About { lines: vec![], seen: &seen })
    };
    assert_eq!(file(&shapes[1]).matches("joined = true").count(), 2);
    let apart = file(&shapes[4]);
    assert!(
        !apart.contains("joined")
            && apart.contains("active_mw = 55.00")
            && apart.contains("active_mw = 85.00"),
        "{apart}"
    );
}

/// The part by which the meter of the next property is wrong, at most.
const METER_ERROR: f64 = 0.005;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A meter that is wrong by up to half a percent: each figure by which mode energy decides is known within
    /// five percent, and each within what it is said to be wrong by, or what the meter is: by chance all that it is
    /// wrong by may be to one side, which no spread of what it says shows.
    #[test]
    fn figures_are_found_with_a_noisy_meter(
        seed in 0.0..1.0f64,
        noise in prop::collection::vec(-METER_ERROR..METER_ERROR, 200),
    ) {
        for subject in shapes() {
            let (model, _) = found(&subject, seed, noise.iter().copied());
            for (figure, estimate) in &model.figures {
                let truth = truth(&subject, *figure, seed);
                let apart = estimate.value - truth;
                if matches!(figure, Figure::Work { .. } | Figure::Floor) {
                    prop_assert!(apart.abs() < 0.05 * truth, "{figure:?}: {estimate:?}, not {truth}");
                }
                prop_assert!(apart.abs() <= (8.0 * estimate.error).max(METER_ERROR * truth.abs()) + 1e-6,
                    "{figure:?}: {estimate:?}, not {truth}");
            }
        }
    }
}
