//! What tasks get on random machines, of what is fair: the most that all can have in proportion to their weights, where
//! each may run on some CPUs and needs so much at most.

use std::fmt::Write;

use powerpack_sim::Machine;

use super::world::{RUNS_FOR_S, outcomes};

/// How many random machines there are.
const NR_MACHINES: usize = 150;
/// Of the groups of tasks so many may run everywhere.
const FREE: f64 = 0.4;
/// By nice, their weights: sched_prio_to_weight of kernel/sched/core.c.
const WEIGHTS: [(i32, f64); 5] = [(0, 1024.0), (-5, 3121.0), (3, 526.0), (5, 335.0), (8, 172.0)];
const SYSTEMS: [&str; 3] = ["packing", "spread", "eevdf"];

/// Tasks that run, think, and run again; with next to nothing to think they are hogs.
struct Group {
    count: usize,
    nice: i32,
    weight: f64,
    /// A bit for each CPU that it may use.
    cpus: usize,
    run_ms: f64,
    think_ms: f64,
    jitter_pct: u32,
}

impl Group {
    fn random(random: &mut fastrand::Rng, nr_cpus: usize) -> Self {
        let all = (1 << nr_cpus) - 1;
        let (nice, weight) = WEIGHTS[random.usize(..WEIGHTS.len())];
        let cpus = if random.f64() < FREE { all } else { random.usize(1..=all) };
        let hog = random.usize(..3) == 0;
        let run_ms = if hog { 60.0 } else { 10f64.powf(random.f64() * 1.9 - 0.7) };
        let think_ms = run_ms * [0.05, 0.3, 0.3, 1.0, 3.0][random.usize(..5)];
        Group {
            count: [1, 1, 2, 3, 4, 6][random.usize(..6)],
            nice,
            weight,
            cpus,
            run_ms,
            think_ms: if hog { 0.01 } else { think_ms },
            jitter_pct: [0, 30, 60][random.usize(..3)],
        }
    }

    /// What one of them needs of a CPU.
    fn demand(&self) -> f64 {
        self.run_ms / (self.run_ms + self.think_ms)
    }

    fn write(&self, to: &mut String) {
        let cpus: Vec<String> = (0..usize::BITS)
            .filter(|cpu| self.cpus >> cpu & 1 == 1)
            .map(|cpu| cpu.to_string())
            .collect();
        let Group { count, nice, run_ms, think_ms, jitter_pct, .. } = self;
        write!(
            to,
            "[[task]]\ncount = {count}\nnice = {nice}\ncpus = '{}'\njitter_pct = {jitter_pct}\n\
             client = {{ run_ms = {run_ms:.4}, think_ms = {think_ms:.4} }}\n",
            cpus.join(",")
        )
        .unwrap();
    }
}

/// What is fair to one task of each group, of a CPU: weighted max-min fairness. The level, what each has for its weight,
/// rises for all until those of some set of CPUs are all used by tasks that may run on no others. These have it then, and
/// it goes on to rise for the rest.
fn fair(groups: &[Group], nr_cpus: usize) -> Vec<f64> {
    let mut fair: Vec<Option<f64>> = vec![None; groups.len()];
    let within = |group: &Group, cpus: usize| group.cpus & !cpus == 0;
    let at = |group: &Group, level: f64| group.demand().min(level * group.weight);
    while fair.contains(&None) {
        let full = (1usize..1 << nr_cpus).filter_map(|cpus| {
            let (mut left, mut rising) = (cpus.count_ones() as f64, vec![]);
            for (group, fair) in groups.iter().zip(&fair).filter(|(group, _)| within(group, cpus)) {
                match fair {
                    Some(fair) => left -= fair * group.count as f64,
                    None => rising.push(group),
                }
            }
            let used = |level: f64| -> f64 {
                rising.iter().map(|group| at(group, level) * group.count as f64).sum()
            };
            (!rising.is_empty() && used(1.0) > left).then(|| (level_of(used, left), cpus))
        });
        let full = full.min_by(|a, b| a.0.total_cmp(&b.0));
        // Where no set of CPUs becomes full, all have what they need, which they have at a level of 1.
        let (level, cpus) = full.unwrap_or((1.0, usize::MAX));
        for (group, fair) in groups.iter().zip(&mut fair) {
            if fair.is_none() && within(group, cpus) {
                *fair = Some(at(group, level));
            }
        }
    }
    fair.into_iter().flatten().collect()
}

/// The level, of at most 1, at which `used` is `left`; by bisection.
fn level_of(used: impl Fn(f64) -> f64, left: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if used(middle) > left { high = middle } else { low = middle }
    }
    high
}

/// What each group gets under `system`, of what is fair.
fn shares(machine: &Machine, groups: &[Group], fair: &[f64], system: &str) -> Vec<f64> {
    let mut tasks = "phases = 'random'\n".to_owned();
    groups.iter().for_each(|group| group.write(&mut tasks));
    let of_group = outcomes(machine, system, &tasks).into_iter().zip(groups.iter().zip(fair));
    of_group
        .map(|(got, (group, fair))| {
            let ran_s = got.activations as f64 * group.run_ms / 1000.0;
            ran_s / (fair * group.count as f64 * RUNS_FOR_S)
        })
        .collect()
}

/// What part of `sorted` is below.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

/// Of what is fair 5 % of the groups may have less than the first, 1 % than the second, 5 % more than the third, and 1 %
/// than the last. Under the kernel's class, which serves each CPU fairly and moves tasks between them by their load, it is
/// 0.74, 0.63, 1.41 and 1.94.
const FAIR: [f64; 4] = [0.8, 0.68, 1.25, 1.7];
/// On two LLCs; there it is 0.71, 0.60, 1.54 and 1.91 under the kernel's class.
const FAIR_ON_TWO: [f64; 4] = [0.77, 0.66, 1.48, 1.9];

/// Random groups on machines of so many LLCs, each with one of these numbers of CPUs, are to get what is fair within these
/// bounds.
fn assert_fair(nr_llcs: usize, cores: &[usize], bounds: [f64; 4]) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut all: [Vec<f64>; 3] = [vec![], vec![], vec![]];
    for _ in 0..NR_MACHINES {
        let cores = cores[random.usize(..cores.len())];
        let mut text = "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n".to_owned();
        text.push_str(&format!("[[llc]]\ncores={cores}\n").repeat(nr_llcs));
        let machine = Machine::parse(&text).unwrap();
        let nr_cpus = cores * nr_llcs;
        let groups: Vec<Group> =
            (0..random.usize(2..=5)).map(|_| Group::random(&mut random, nr_cpus)).collect();
        let fair = fair(&groups, nr_cpus);
        for (system, all) in SYSTEMS.iter().zip(&mut all) {
            all.extend(shares(&machine, &groups, &fair, system));
        }
    }
    for (system, all) in SYSTEMS.iter().zip(&mut all) {
        all.sort_by(f64::total_cmp);
        let parts = [0.0, 0.01, 0.05, 0.5, 0.95, 0.99, 1.0].map(|part| quantile(all, part));
        println!("{nr_llcs} LLCs, {system}: {} groups, of what is fair {parts:.2?}", all.len());
        let [_, least, less, _, more, most, _] = parts;
        let is_fair =
            less >= bounds[0] && least >= bounds[1] && more <= bounds[2] && most <= bounds[3];
        assert!(is_fair || *system == "eevdf", "{parts:.2?} of what is fair in {system}");
    }
}

#[test]
fn groups_get_what_is_fair() {
    assert_fair(1, &[1, 2, 4, 4, 6], FAIR);
}

#[test]
fn groups_get_what_is_fair_on_two_llcs() {
    assert_fair(2, &[1, 2, 2, 3], FAIR_ON_TWO);
}

const TWO_LLCS: &str = "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n[[llc]]\ncores=2\n[[llc]]\ncores=2\n";

/// How often `nr` equal tasks run that wake as soon as they have run for 10 ms, the one that does least and the one that
/// does most, beside `others` on two LLCs of two CPUs.
fn runs_on_two_llcs(system: &str, nr: usize, others: &str) -> (usize, usize) {
    let machine = Machine::parse(TWO_LLCS).unwrap();
    let one =
        "[[task]]\nfork_join = { workers = 1, run_ms = 10, leader_ms = 0.01, period_ms = 0 }\n";
    let tasks = one.repeat(nr) + others;
    let runs = outcomes(&machine, system, &tasks).into_iter().take(nr).map(|task| task.activations);
    let runs: Vec<usize> = runs.collect();
    (*runs.iter().min().unwrap(), *runs.iter().max().unwrap())
}

/// Equal tasks that wake each 10 ms, and are no multiple of the CPUs, share those of two LLCs: two of five would have a CPU
/// each for good if a CPU took what waits in the other LLC only where that is fuller (PP_STEAL_ANY_EVERY).
#[test]
fn equal_tasks_share_two_llcs() {
    for (system, nr) in [("packing", 5), ("spread", 5), ("packing", 7), ("spread", 7)] {
        let (least, most) = runs_on_two_llcs(system, nr, "");
        assert!(least as f64 >= 0.85 * most as f64, "{least} to {most} runs of {nr} in {system}");
    }
}

/// Heavy tasks that are bound to the CPUs of one LLC have most of these, so what waits there for them is to go to the other
/// one: 128 to 200 runs if a CPU that they have most of counted as a whole one.
#[test]
fn what_bound_tasks_have_of_an_llc_is_not_counted() {
    let bound = "[[task]]\nhog = true\nnice = -10\ncpus = '0'\n[[task]]\nhog = true\nnice = -10\ncpus = '1'\n";
    for system in ["packing", "spread"] {
        let (least, most) = runs_on_two_llcs(system, 8, bound);
        assert!(least as f64 >= 0.88 * most as f64, "{least} to {most} runs in {system}");
    }
}

#[test]
fn what_is_fair_follows_weights_cpus_and_needs() {
    let group = |count, weight, cpus, demand: f64| Group {
        count,
        nice: 0,
        weight,
        cpus,
        run_ms: demand,
        think_ms: 1.0 - demand,
        jitter_pct: 0,
    };
    let near = |groups: &[Group], nr_cpus, expected: &[f64]| {
        let fair = fair(groups, nr_cpus);
        let is_near =
            fair.iter().zip(expected).all(|(fair, expected)| (fair - expected).abs() < 1e-6);
        assert!(is_near, "{fair:?}, not {expected:?}");
    };
    near(&[group(1, 1024.0, 1, 1.0), group(1, 512.0, 1, 1.0)], 1, &[2.0 / 3.0, 1.0 / 3.0]);
    // A small one needs less than its share.
    near(&[group(1, 1024.0, 1, 0.1), group(2, 1024.0, 1, 1.0)], 1, &[0.1, 0.45]);
    // Three bound to the first CPU, and one that may have both.
    near(&[group(3, 1024.0, 1, 1.0), group(1, 1024.0, 3, 1.0)], 2, &[1.0 / 3.0, 1.0]);
    // Nobody waits.
    near(&[group(1, 1024.0, 3, 1.0), group(1, 15.0, 3, 0.5)], 2, &[1.0, 0.5]);
}
