//! `scx_powerpack sim table NAME`: the published tables made again, each number
//! beside the published one, and our modes below the systems that they come from.

mod costs;
mod draw;
mod draws;
mod ebizzy;
mod energy;
mod kernel;
mod means;
mod non_idle;
mod pstate;
mod ratios;
mod reality;
mod run_period;
mod savings;
mod sched_mc;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use powerpack_sim::{Machine, Outcome, Setup};
use powerpack_workload::Workload;

use super::system::Named;
use crate::settings::policy::Mode;

/// Of all tables, unless they say otherwise.
const SEED: u64 = 1;
/// Where energy is compared nothing counts before systems know the load (s), as in `bench` and in the laboratory
/// (`settle`). A new task counts as half a CPU's, and the clocks of all CPUs on which tasks begin go up for that: of five
/// seconds from the first moment on that is some hundredths of the energy (`sim --until 5` beside `--until 80`).
const SETTLE_S: f64 = 1.0;

/// The one that can be drawn.
const PICTURED: &str = "draws";

/// By row how far it is off, and the notes of a table.
#[cfg(test)]
type Offs = (&'static str, Vec<(String, f64)>, &'static [&'static str]);

/// A table by its name, and how it is made.
type Table = (&'static str, &'static str, fn() -> Result<()>);

const TABLES: [Table; 14] = [
    ("audio", "non-idle % of three CPUs, audio playback (2013)", non_idle::audio),
    ("web-audio", "the same, web pages rendered during audio playback", non_idle::web_audio),
    ("native8", "the same, eight threads that compute", non_idle::native8),
    ("cyclictest", "the same, short periodic tasks", non_idle::cyclictest),
    ("ebizzy", "what power-aware scheduling cost ebizzy (2013)", ebizzy::print),
    ("sched_mc", "performance and power at each level of sched_mc (2009)", sched_mc::print),
    ("run-period", "overruns and overhead of frequency governors (2016)", run_period::print),
    (
        "energy",
        "energy of our modes beside the best static placement and the kernel's own",
        energy::print,
    ),
    (PICTURED, "energy of our modes on machines drawn at random", || draws::print(None)),
    (
        pstate::NAME,
        "the same where nobody hears what frequencies they request: intel_pstate, amd_pstate",
        pstate::print,
    ),
    ("costs", "what the scheduler's own code costs on 4 to 1,024 CPUs", costs::print),
    ("reality", "the test VM's measured tables beside simulated ones", reality::cpus),
    ("laboratory", "power in the laboratory beside simulated", reality::power),
    ("kernel", "the kernel's own class in the laboratory beside simulated", kernel::print),
];

/// Prints table `name`, and draws it into the file `picture`, or prints the list of tables. Fails with a
/// sentence if there is no such table or picture.
pub fn run(name: Option<&str>, picture: Option<&Path>) -> Result<()> {
    if picture.is_some() {
        ensure!(name == Some(PICTURED), "there is a picture of table '{PICTURED}' alone");
        return draws::print(picture);
    }
    let Some(name) = name else {
        TABLES.iter().for_each(|(name, about, _)| println!("{name:<12} {about}"));
        return Ok(());
    };
    match TABLES.iter().find(|(known, ..)| *known == name) {
        Some((_, _, print)) => print(),
        None => {
            let names = TABLES.map(|(name, ..)| name).join(", ");
            bail!("there is no table '{name}': choose one of {names}")
        }
    }
}

/// Prints a machine and a load of a table of draws, as JSON. Fails if there is no such thing.
pub fn draw(table: &str, machine: &str, load: &str) -> Result<()> {
    let mut tables = [draws::DRAWN, pstate::DRAWN].into_iter();
    let drawn = tables.find(|drawn| drawn.table == table);
    let drawn = drawn.with_context(|| format!("nothing is drawn for table '{table}'"))?;
    println!("{}", serde_json::to_string(&drawn.simulate(machine, load, drawn.draws)?)?);
    Ok(())
}

/// Simulates a system by its name.
fn simulate(machine: &Machine, workload: &Workload, seconds: f64, system: &str) -> Result<Outcome> {
    simulate_setup(&Setup::new(machine, workload, seconds, SEED), system)
}

/// The same, of what is set up.
fn simulate_setup(setup: &Setup, system: &str) -> Result<Outcome> {
    let system: Named = system.parse().with_context(|| format!("system {system}"))?;
    Ok(powerpack_sim::run(setup, &system.on(setup.machine)?)?.0)
}

/// Simulates a system by its name, once it knows the load.
fn simulate_settled(
    machine: &Machine,
    workload: &Workload,
    seconds: f64,
    system: &str,
) -> Result<Outcome> {
    let new = Setup::new(machine, workload, seconds, SEED);
    simulate_setup(&Setup { settle_s: SETTLE_S, ..new }, system)
}

/// The names of our modes, packing in both ways: a table grows with them by itself.
fn modes() -> impl Iterator<Item = String> {
    let modes = Mode::ALL.into_iter().map(|mode| mode.name().to_owned());
    modes.chain([format!("{}:small", Mode::Packing)])
}

/// A row of a Markdown table.
fn row(cells: impl IntoIterator<Item = String>) {
    println!("| {} |", cells.into_iter().collect::<Vec<_>>().join(" | "));
}

/// The head of one.
fn head(cells: &[&str]) {
    row(cells.iter().map(|cell| (*cell).to_owned()));
    row(cells.iter().map(|_| "---".to_owned()));
}

/// What a cell may be off by, from the nearer of the published ones, without a word (points).
const OFF_POINTS: f64 = 3.0;

/// By how much a row is `off`, and, if that is more than goes without a word, whether a note explains it:
/// one that begins with the row's name, alone or in a list, and a colon.
fn off_cell(off: f64, name: &str, notes: &[&str]) -> String {
    let names = |note: &&str| note.split_once(": ").map_or("", |(names, _)| names).to_owned();
    let explained = notes.iter().any(|note| names(note).split(", ").any(|of| of == name));
    match (off <= OFF_POINTS, explained) {
        (true, _) => format!("{off:.1}"),
        (false, true) => format!("{off:.1} (explained)"),
        (false, false) => format!("{off:.1} (not explained)"),
    }
}

/// What is to be said of a table.
fn notes(notes: &[&str]) {
    println!();
    notes.iter().for_each(|note| println!("- {note}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(machine: &str, workload: &str, system: &str) -> Outcome {
        let (machine, workload) = (Machine::find(machine), Workload::find(workload));
        simulate(&machine.unwrap(), &workload.unwrap(), 10.0, system).unwrap()
    }

    #[test]
    fn packing_costs_ebizzy_nothing_and_counting_threads_a_third_or_more() {
        let drop = |system: &str| {
            let of = |system: &str| outcome("power7", "ebizzy-4", system).throughput;
            1.0 - of(system) / of("3.9")
        };
        assert!((0.28..0.50).contains(&drop("pas-v7")), "{}", drop("pas-v7"));
        assert!(drop("pas-v7-capacity") < 0.6 * drop("pas-v7") && drop("packing") < 0.02);
    }

    #[test]
    fn a_row_that_is_off_says_whether_a_note_explains_it() {
        let notes = ["pas-v7, pst-v3: as it is", "of no row"];
        assert_eq!(off_cell(3.0, "pst-v4", &notes), "3.0");
        assert_eq!(off_cell(3.1, "pst-v3", &notes), "3.1 (explained)");
        assert_eq!(off_cell(3.1, "pst", &notes), "3.1 (not explained)");
    }

    /// Of the mails' tables, every one.
    #[test]
    fn every_row_that_is_off_is_explained_and_no_other() {
        for (name, offs, notes) in [
            non_idle::offs("audio"),
            non_idle::offs("web-audio"),
            non_idle::offs("native8"),
            non_idle::offs("cyclictest"),
            ebizzy::offs(),
            sched_mc::offs(),
            run_period::offs(),
        ]
        .map(Result::unwrap)
        {
            for (row, off) in offs {
                let explained = off_cell(OFF_POINTS + 1.0, &row, notes).ends_with(" (explained)");
                assert_eq!(off > OFF_POINTS, explained, "{name}: {row} is off by {off}");
            }
        }
    }

    #[test]
    fn packing_packs_like_the_best_of_2013_and_renders_like_the_baseline() {
        for load in ["audio", "cyclictest"] {
            let surplus = |system| outcome("tc2-a7", load, system).beyond_busiest_pct;
            assert!(surplus("packing") <= surplus("pst-v4") + 0.01, "{load}");
        }
        let render = |system| outcome("tc2-a7", "web-audio", system).tasks[0].mean_us;
        assert!(render("packing") < 1.02 * render("3.9"));
        let score = |system| outcome("tc2-a7", "native8", system).throughput;
        assert!(score("packing") > 0.98 * score("3.9"));
    }

    #[test]
    fn no_run_is_late_for_the_sake_of_a_low_frequency() {
        let machine = Machine::find("chromebook2").unwrap();
        let run = |run_ms, period_ms, system| {
            let workload = Workload::run_period(run_ms, period_ms, Some("4-7")).unwrap();
            simulate(&machine, &workload, 10.0, system).unwrap()
        };
        // What of the energy of the highest frequency is enough at most: measured, and a
        // thirtieth more. At 9/12 there is nothing to save.
        for (run_ms, period_ms, enough) in
            [(1.0, 10.0, 0.84), (4.0, 10.0, 0.86), (5.0, 9.0, 0.99), (9.0, 12.0, 1.0)]
        {
            let packing = run(run_ms, period_ms, "packing+schedutil");
            let fastest = run(run_ms, period_ms, "packing+performance");
            assert_eq!(packing.overruns, 0, "{run_ms}/{period_ms}");
            let share = packing.energy.total_mj() / fastest.energy.total_mj();
            assert!(share <= enough, "{run_ms}/{period_ms} takes {share} of the energy");
        }
        let late = run(9.0, 12.0, "3.9+schedutil").overruns;
        assert!(late > 0, "the model of schedutil is not late either");
    }

    #[test]
    fn energy_takes_no_more_than_the_best_of_the_other_modes() {
        // Of each of them another mode is the best one.
        for (machine, load) in [
            ("chromebook2", "tiny"),
            ("tc2-a7", "short"),
            ("hybrid-laptop", "light"),
            ("phone", "short"),
        ] {
            let taken = |mode: &Mode| outcome(machine, load, mode.name()).energy.total_mj();
            let others = Mode::ALL.iter().filter(|mode| **mode != Mode::Energy);
            let best = others.map(taken).fold(f64::INFINITY, f64::min);
            let energy = taken(&Mode::Energy);
            assert!(energy <= 1.02 * best, "{load} on {machine}: {energy} mJ, and {best}");
        }
    }

    /// In the laboratory the clock of the large cores does not fall below 800 MHz, as slower takes as
    /// much, so that this load has 16 % of what the lowest clock costs in time (docs/powerlab.md); and
    /// of a load that is late, half is left out, for which a slow clock is enough.
    #[test]
    fn the_kernels_own_class_is_as_slow_as_it_was_measured() {
        let machine = Machine::find("chromebook2").unwrap();
        let run = |workload: &Workload, governor| {
            simulate(&machine, workload, 10.0, &format!("eas+{governor}")).unwrap()
        };
        let periodic = |run_ms, period_ms| {
            Workload::parse(&format!(
                "name='x'\nabout=''\n[[task]]\ncpus='4-7'\n\
                 periodic={{run_ms={run_ms},period_ms={period_ms}}}\n"
            ))
            .unwrap()
        };
        let light = periodic(1, 10);
        let [of, fast, slow] =
            ["schedutil", "performance", "powersave"].map(|governor| run(&light, governor));
        let overhead_pct = run_period::overhead_pct(&of, &fast, &slow);
        assert!((14.0..19.0).contains(&overhead_pct), "{overhead_pct}");
        assert!(of.frequency_changes < 100, "{of:?}");
        let late = run(&periodic(9, 12), "schedutil");
        let every_second = (300..500).contains(&late.overruns);
        assert!(every_second && (0.42..0.53).contains(&(late.power_mw / 1e3)), "{late:?}");
    }

    #[test]
    fn to_place_by_energy_saves_some_where_a_kernel_does_it() {
        for (machine, load) in [("chromebook2", "tiny"), ("phone", "light"), ("phone", "mixed")] {
            let taken = |system| outcome(machine, load, system).energy.total_mj();
            let (eas, eevdf) = (taken("eas"), taken("eevdf"));
            assert!(eas < 0.8 * eevdf, "{load} on {machine}: {eas} mJ, and {eevdf}");
        }
        assert_eq!(outcome("vm8", "light", "eas"), outcome("vm8", "light", "eevdf"));
    }

    /// Its largest task needs 8 ms of 20 there at full speed: no wait for the CPU, and no slower clock,
    /// may be taken for a need of more.
    #[test]
    fn what_small_cores_carry_does_not_run_on_large_ones() {
        for mode in [Mode::Packing, Mode::Energy] {
            let outcome = outcome("phone", "light", mode.name());
            let large_pct: f64 = outcome.non_idle_pct[4..].iter().sum();
            assert!(large_pct < 2.0, "{mode}: {large_pct} % of a large core");
        }
    }

    #[test]
    fn every_machine_and_workload_that_comes_with_it_runs() {
        for (machine, _) in powerpack_sim::MACHINES {
            let machine = Machine::find(machine).unwrap();
            for (name, _) in powerpack_workload::SHIPPED {
                let workload = Workload::find(name).unwrap();
                // Much work on a large machine, and nothing that others do not show.
                if name == "crowd" || machine.name == "many" && name != "light" {
                    continue;
                }
                for system in ["packing", "spread", "3.9", "sched_mc=5", "eevdf", "eas"] {
                    let outcome = simulate(&machine, &workload, 0.1, system).unwrap();
                    assert!(outcome.throughput > 0.0, "{name} on {} does nothing", machine.name);
                }
            }
        }
    }

    #[test]
    fn a_table_that_is_not_there_is_said_with_those_that_are() {
        let text = run(Some("chairs"), None).unwrap_err().to_string();
        assert!(text.starts_with("there is no table 'chairs': choose one of audio, "), "{text}");
    }
}
