//! Whether the choice is right, on machines made up of chance: with a noisy meter and a load that drifts.
//!
//! `cargo test --bin scx_powerpack trials -- --nocapture` prints the shares.

use std::f64::consts::{SQRT_2, TAU};

use special::Error;

use super::*;

/// Trials of each case.
const NR: u64 = 200;
/// A look of the agent (s).
const LOOK_S: f64 = 5.0;
/// In which the choice is to be right (s).
const LIMIT_S: f64 = 600.0;
/// A difference that matters.
const RELEVANT: f64 = judge::RELEVANT;

/// A machine whose modes differ, its meter and its load.
struct Machine {
    /// What each mode takes, in that of the best.
    factors: Vec<(Mode, f64)>,
    /// Power for work, in any unit.
    per_work_w: f64,
    meter_noise: f64,
    /// Of the work of a block.
    work_noise: f64,
    random: fastrand::Rng,
    phases: [f64; 2],
    now_s: f64,
}

impl Machine {
    fn new(factors: Vec<(Mode, f64)>, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let phases = [random.f64(), random.f64()];
        let (meter_noise, work_noise) = (0.02, 0.02);
        Machine { factors, per_work_w: 20.0, meter_noise, work_noise, random, phases, now_s: 0.0 }
    }

    /// About 1, with that standard deviation.
    fn noise(&mut self, share: f64) -> f64 {
        let draw = self.random.f64().clamp(1e-9, 1.0 - 1e-9);
        1.0 + share * SQRT_2 * (2.0 * draw - 1.0).inv_error()
    }

    /// Runs `mode` for some looks. The load drifts by a quarter to and fro in some minutes, and the machine takes up
    /// to 6 % more as it grows warm. Half of the power at the middle of the load is idle's.
    fn run(&mut self, mode: Mode, looks: u32) -> Block {
        let seconds = f64::from(looks) * LOOK_S;
        self.now_s += seconds;
        let wave = |period_s: f64, phase: f64| (TAU * (self.now_s / period_s + phase)).sin();
        let drift = 1.0 + 0.25 * wave(420.0, self.phases[0]);
        let warmth = 1.03 + 0.03 * wave(1300.0, self.phases[1]);
        let work_share = 0.14 * drift * self.noise(self.work_noise);
        let factor = self.factors.iter().find(|(of, _)| *of == mode).unwrap().1;
        let power_w = factor * warmth * (2.8 + self.per_work_w * work_share);
        let joules = power_w * seconds * self.noise(self.meter_noise);
        Block { mode, seconds, joules, work_share, capacity: 4.0, wake_ups: 0 }
    }

    /// What `mode` takes more than the best, as a share.
    fn regret(&self, mode: Mode) -> f64 {
        self.factors.iter().find(|(of, _)| *of == mode).unwrap().1 - 1.0
    }
}

/// Has `proof` run the machine for `for_s`; returns its choice at the end, and for how long it was wrong in all (s).
fn run(proof: &mut Proof, machine: &mut Machine, for_s: f64) -> (Mode, f64) {
    let (end_s, mut wrong_s) = (machine.now_s + for_s, 0.0);
    let kind = Kind::of(false, 0.14);
    loop {
        let now_s = machine.now_s as u64;
        let choice = choice(proof, kind);
        if machine.now_s >= end_s {
            return (choice, wrong_s);
        }
        let before_s = machine.now_s;
        let plan = proof.plan(Some(kind), true, now_s);
        let block = machine.run(plan.mode, plan.block_looks.unwrap_or(1));
        if machine.regret(choice) >= RELEVANT {
            wrong_s += machine.now_s - before_s;
        }
        if plan.block_looks.is_some() {
            proof.take(block, machine.now_s as u64);
        }
    }
}

/// What would run if nothing more were compared.
fn choice(proof: &Proof, kind: Kind) -> Mode {
    let verdict = proof.cases.get(&kind).and_then(|case| case.verdict.as_ref());
    verdict.map_or(proof.prior, |verdict| verdict.mode)
}

const TWO: [Mode; 2] = [Mode::Packing, Mode::Spread];
const THREE: [Mode; 3] = [Mode::Packing, Mode::Energy, Mode::Spread];

/// Modes of which the best is drawn, and the next one takes more by `difference`, others up to a half more.
fn drawn(modes: &[Mode], difference: f64, seed: u64) -> Vec<(Mode, f64)> {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
    let mut modes = modes.to_vec();
    random.shuffle(&mut modes);
    let others = 1.0 + difference + random.f64() * 0.5;
    let factors = [1.0, 1.0 + difference, others];
    modes.into_iter().zip(factors).collect()
}

/// The share of trials of which `is_right` says so, printed.
fn share(what: &str, is_right: impl Fn(u64) -> bool) -> f64 {
    let share = (0..NR).filter(|&seed| is_right(seed)).count() as f64 / NR as f64;
    println!("{what}: {:.1} % of {NR}", share * 100.0);
    share
}

#[test]
fn the_choice_is_right_within_ten_minutes() {
    for modes in [TWO.as_slice(), &THREE] {
        for difference in [0.03, 0.05, 0.08, 0.2] {
            let what = format!("{}, {:.0} % apart: right", list(modes), difference * 100.0);
            let share = share(&what, |seed| {
                let mut machine = Machine::new(drawn(modes, difference, seed), seed);
                let mut proof = Proof::new(modes.to_vec(), Mode::Packing, seed);
                let (choice, _) = run(&mut proof, &mut machine, LIMIT_S);
                machine.regret(choice) < RELEVANT
            });
            assert!(share >= 0.95, "{what} in {share}");
        }
    }
}

#[test]
fn nothing_is_claimed_where_there_is_nothing() {
    let share = share("no difference: a claim", |seed| {
        let factors = THREE.map(|mode| (mode, 1.0)).to_vec();
        let mut machine = Machine::new(factors, seed);
        let mut proof = Proof::new(THREE.to_vec(), Mode::Packing, seed);
        run(&mut proof, &mut machine, 2.0 * LIMIT_S);
        proof.verdicts().any(|verdict| !verdict.margins.is_empty())
    });
    assert!(share <= 2.0 * judge::ALPHA, "{share}");
}

#[test]
fn a_choice_that_becomes_wrong_is_so_for_ten_minutes_at_most() {
    let share = share("sides change, and it shows: wrong for ten minutes at most", |seed| {
        let mut machine = Machine::new(drawn(&TWO, 0.08, seed), seed);
        let mut proof = Proof::new(TWO.to_vec(), Mode::Packing, seed);
        run(&mut proof, &mut machine, 2.0 * LIMIT_S);
        // Another load of the same work: all take half as much again, and the best is another.
        machine.factors =
            machine.factors.iter().map(|&(mode, factor)| (mode, 2.08 - factor)).collect();
        machine.per_work_w = 40.0;
        let (choice, wrong_s) = run(&mut proof, &mut machine, 3.0 * LIMIT_S);
        machine.regret(choice) < RELEVANT && wrong_s <= LIMIT_S
    });
    assert!(share >= 0.95, "{share}");
}
