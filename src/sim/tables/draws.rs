//! Our modes on machines drawn at random around those that come with the simulator, as most of their
//! figures are estimates: energy over that of others, and in how many draws each is below or above 1.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use powerpack_sim::Machine;

use super::draw::{BY_ENERGY, Case, Drawn, over_all};
use super::means::kernel;
use super::{head, notes, row, savings};
use crate::settings::policy::Mode;

const DRAWS: usize = 200;
pub const DRAWN: Drawn = Drawn { table: "draws", draws: DRAWS, systems, governor: "+schedutil" };
/// An earlier fair class, whose energy is shown too, beside the kernel's own of today.
const EARLIER: &str = "3.9";

const LOADS: [&str; 8] =
    ["light", "tiny", "mixed", "audio", "short", "desktop", "random-20", "web-audio"];
/// Of the best of the other modes' energy: within what two machines of a series differ by.
const NEAR: f64 = 1.02;

/// Machines on which all systems take the same.
const NOTHING_TO_SAVE: [&str; 4] = ["many", "vm4", "vm8", "power7"];

/// All that is compared on `machine`, our modes first.
fn systems(machine: &Machine) -> Vec<String> {
    let modes = Mode::ALL.into_iter().map(|mode| mode.name().to_owned());
    let there = |name: &String| name != BY_ENERGY || machine.has_energy_model();
    modes.chain([EARLIER.to_owned()]).chain(kernel().filter(there)).collect()
}

/// What energy is compared with, our modes first.
fn others() -> Vec<String> {
    let modes = Mode::ALL.into_iter().filter(|mode| *mode != Mode::Energy);
    modes.map(|mode| mode.name().to_owned()).chain([EARLIER.to_owned()]).chain(kernel()).collect()
}

/// Prints the table, and draws what is saved into the file `picture`.
pub fn print(picture: Option<&Path>) -> Result<()> {
    let others = others();
    let mut cells = vec!["machine".to_owned(), "load".into()];
    cells.extend(others.iter().map(|system| format!("energy over {system}")));
    cells.push(format!("within {NEAR} x the best mode"));
    cells.push("overruns".to_owned());
    head(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    let cases = DRAWN.simulate_all(&names())?;
    cases.iter().for_each(|case| print_row(case, &others));
    println!();
    print_means(&cases);
    let near: usize = cases.iter().map(near).sum();
    println!(
        "\nMode energy is within {NEAR} x the best of the other modes in {:.0} % of the draws.",
        near as f64 / (cases.len() * DRAWS) as f64 * 100.0
    );
    print_error(&cases);
    if let Some(file) = picture {
        let svg = savings::picture(&cases)?;
        fs::write(file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    }
    notes(&[
        &format!(
            "Of each machine {DRAWS} are drawn, the same for all systems: powers, idle states and costs, each \
             from its range. That is 1/1.5 to 1.5 times the figure in the file, if the file states no other."
        ),
        "`0.873 in 198`: the geometric mean of all draws, and in how many of them the ratio is on the same side \
         of 1.",
        "Energy is for the same work: that of activations which are left out is not saved. Overruns are of all \
         draws.",
        "eas is where a kernel places by energy: several kinds of cores, without threads. Elsewhere it is the \
         same as eevdf.",
    ]);
    Ok(())
}

/// All machines and loads of the table.
fn names() -> Vec<(&'static str, &'static str)> {
    let machines = powerpack_sim::MACHINES.iter().map(|(machine, _)| *machine);
    let saving = machines.filter(|machine| !NOTHING_TO_SAVE.contains(machine));
    saving.flat_map(|machine| LOADS.map(|load| (machine, load))).collect()
}

fn print_row(case: &Case, others: &[String]) {
    let mut cells = vec![case.machine.clone(), case.load.clone()];
    let over = others.iter().map(|other| case.over(Mode::Energy.name(), other));
    cells.extend(over.map(|ratios| ratios.map_or(String::new(), |ratios| ratios.show())));
    cells.push(near(case).to_string());
    cells.push(case.overruns(|_| true));
    row(cells);
}

/// In how many draws energy takes about as little as the best of the other modes.
fn near(case: &Case) -> usize {
    let others = Mode::ALL.into_iter().filter(|mode| *mode != Mode::Energy);
    let over = others.filter_map(|mode| case.over(Mode::Energy.name(), mode.name()));
    over.reduce(|worst, over| worst.max(&over)).map_or(0, |worst| worst.at_most(NEAR))
}

/// Of all cases: our modes over the kernel's own class, and energy over our modes.
fn print_means(cases: &[Case]) {
    let with_eas = over_all(cases, Mode::Energy.name(), BY_ENERGY).map_or(0, |(_, nr)| nr);
    head(&[
        "geometric mean",
        &format!("over eevdf, {} cases", cases.len()),
        &format!("over eas, {with_eas} cases"),
        &format!("energy over it, {} cases", cases.len()),
    ]);
    let show = |system: &str, other: &str| {
        let ratios = over_all(cases, system, other).filter(|_| system != other);
        ratios.map_or(String::new(), |(ratios, _)| ratios.show())
    };
    let energy = Mode::Energy.name();
    for system in Mode::ALL.into_iter().map(Mode::name).chain([EARLIER]) {
        row([
            system.to_owned(),
            show(system, "eevdf"),
            show(system, BY_ENERGY),
            show(energy, system),
        ]);
    }
}

/// How sure the means are.
fn print_error(cases: &[Case]) {
    let energy = Mode::Energy.name();
    let errors = cases.iter().filter_map(|case| case.over(energy, "eevdf"));
    let largest = errors.map(|ratios| ratios.error_pct()).fold(0.0, f64::max);
    let all = over_all(cases, energy, "eevdf").map_or(0.0, |(ratios, _)| ratios.error_pct());
    println!(
        "\nThe standard error of energy over eevdf is at most {largest:.1} % of a row, and {all:.2} % of the mean \
         of all cases."
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use powerpack_workload::Workload;

    #[test]
    fn a_kernel_that_places_by_energy_is_compared_where_there_is_one() {
        let there = |name| systems(&Machine::find(name).unwrap()).contains(&BY_ENERGY.to_owned());
        assert!(there("phone") && !there("handheld"));
    }

    #[test]
    fn all_machines_that_can_save_are_drawn() {
        let names = names();
        for (machine, load) in &names {
            Machine::find(machine).unwrap();
            Workload::find(load).unwrap();
        }
        assert!(
            names.contains(&("server-2x64", "web-audio")) && !names.contains(&("many", "light"))
        );
    }
}
