//! Our modes where the frequency goes by the load of each CPU, and not by what the scheduler requests:
//! intel_pstate and amd_pstate in their active modes. On machines drawn at random, as in the table of draws.

use anyhow::Result;
use powerpack_sim::{Machine, epp_of};

use super::draw::{Case, Drawn, over_all};
use super::{head, notes, row};
use crate::settings::hints::default_epp;
use crate::settings::policy::Mode;

pub const NAME: &str = "pstate";
pub const DRAWN: Drawn = Drawn { table: NAME, draws: 50, systems, governor: "" };

const LOADS: [&str; 4] = ["light", "mixed", "audio", "desktop"];
/// The kernel's own class, which all is compared with.
const KERNEL: &str = "eevdf";
/// Firmware, a model; the driver without it, by its rule; and what hears the scheduler.
const EPP: &str = "epp";
const NO_HWP: &str = "intel-pstate";
const HEARS: &str = "schedutil";
/// Machines of x86, and who chooses their frequencies: Sandy Bridge has no HWP, AMD no intel_pstate.
const MACHINES: [(&str, &[&str]); 6] = [
    ("hybrid-laptop", &[EPP, NO_HWP]),
    ("laptop-lpe", &[EPP]),
    ("apu-2ccx", &[EPP]),
    ("handheld", &[EPP]),
    ("server-2x64", &[EPP]),
    ("snb-4s", &[NO_HWP]),
];
/// Of the modes, those whose placement is shown at the preferences below too.
const PLACED: [Mode; 2] = [Mode::Packing, Mode::Energy];
/// What a preference means differs by model, and so does what firmware makes of it. The first is the kernel's
/// `balance_performance` on Meteor Lake, the others are that and `balance_power` elsewhere.
const PREFERENCES: [u8; 3] = [64, 128, 192];

fn governors(machine: &str) -> &'static [&'static str] {
    MACHINES.iter().find(|(name, _)| *name == machine).map_or(&[], |(_, governors)| governors)
}

fn at(system: impl AsRef<str>, governor: impl AsRef<str>) -> String {
    format!("{}+{}", system.as_ref(), governor.as_ref())
}

fn preferring(epp: u8) -> String {
    format!("{EPP}={epp}")
}

/// Ours with each governor of the machine, and the kernel's own; some at all preferences.
fn systems(machine: &Machine) -> Vec<String> {
    let governors = governors(&machine.name);
    let all = Mode::ALL.map(Mode::name).into_iter().chain([KERNEL]);
    let placed = PLACED.map(Mode::name).into_iter().chain([KERNEL]);
    let mut systems: Vec<String> = governors
        .iter()
        .flat_map(|governor| all.clone().map(move |name| at(name, governor)))
        .collect();
    systems.extend(placed.clone().map(|name| at(name, HEARS)));
    if governors.contains(&EPP) {
        let each = PREFERENCES.into_iter().map(preferring);
        systems.extend(each.flat_map(|epp| placed.clone().map(move |name| at(name, &epp))));
    }
    systems
}

/// What is compared: what it is called, and which system is over which other one.
struct Ratio {
    title: String,
    system: String,
    other: String,
}

/// What a user has of each mode.
fn as_set(governor: &str) -> Vec<Ratio> {
    let ratio = |mode: Mode| Ratio {
        title: mode.name().to_owned(),
        system: at(mode.name(), governor),
        other: at(KERNEL, governor),
    };
    Mode::ALL.map(ratio).into()
}

/// What of that is the placement's, what the preference's, and what it is where requests are heard.
fn apart() -> Vec<Ratio> {
    let [_, usual, saves] = PREFERENCES.map(preferring);
    let mut ratios = vec![Ratio {
        title: format!("{KERNEL}, {saves} over {usual}"),
        system: at(KERNEL, saves),
        other: at(KERNEL, usual),
    }];
    let governors = PREFERENCES.into_iter().map(preferring).chain([HEARS.to_owned()]);
    for governor in governors {
        ratios.extend(PLACED.map(|mode| Ratio {
            title: format!("{mode}, both {governor}"),
            system: at(mode.name(), &governor),
            other: at(KERNEL, &governor),
        }));
    }
    ratios
}

pub fn print() -> Result<()> {
    let names: Vec<(&str, &str)> =
        MACHINES.iter().flat_map(|(machine, _)| LOADS.map(|load| (*machine, load))).collect();
    let cases = DRAWN.simulate_all(&names)?;
    println!("Energy for the same work over that of {KERNEL} with the same governor:\n");
    let titles = as_set(EPP).into_iter().map(|ratio| ratio.title);
    let first = ["machine", "governor", "load"].map(str::to_owned).into_iter();
    let cells: Vec<String> = first.chain(titles).chain(["overruns".to_owned()]).collect();
    head(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    for case in &cases {
        governors(&case.machine).iter().for_each(|governor| print_row(case, governor));
    }
    println!("\nThe geometric mean:\n");
    print_means(&cases);
    print_notes();
    Ok(())
}

fn print_row(case: &Case, governor: &str) {
    let mut cells = vec![case.machine.clone(), governor.to_owned(), case.load.clone()];
    let over = as_set(governor).into_iter().map(|ratio| case.over(&ratio.system, &ratio.other));
    cells.extend(over.map(|ratios| ratios.map_or(String::new(), |ratios| ratios.show())));
    cells.push(case.overruns(|system| system.ends_with(&at("", governor))));
    row(cells);
}

/// A row for each ratio, as there are many of few figures; each of the cases of its governor.
fn print_means(cases: &[Case]) {
    head(&[
        "governor",
        &format!("over {KERNEL}"),
        "energy for the same work",
        "cases",
        "overruns",
        &format!("{KERNEL}'s overruns"),
    ]);
    for governor in [EPP, NO_HWP] {
        let of_governor =
            || cases.iter().filter(move |case| governors(&case.machine).contains(&governor));
        let ratios = if governor == EPP { apart() } else { Vec::new() };
        for Ratio { title, system, other } in as_set(governor).into_iter().chain(ratios) {
            let Some((ratios, nr)) = over_all(of_governor(), &system, &other) else { continue };
            let overruns =
                |name: &str| -> u64 { of_governor().map(|case| case.overruns_of(name)).sum() };
            let [late, others_late] = [&system, &other].map(|name| overruns(name).to_string());
            row([governor.to_owned(), title, ratios.show(), nr.to_string(), late, others_late]);
        }
    }
}

fn print_notes() {
    let saves = default_epp(Mode::Packing).unwrap_or_default();
    notes(&[
        &format!(
            "Of each machine {} are drawn, as in the table of draws; `0.873 in 48`: the geometric mean of all draws, \
             and in how many of them the ratio is on the same side of 1. Overruns are of all draws.",
            DRAWN.draws
        ),
        &format!(
            "{EPP}: the firmware of intel_pstate with HWP and of amd-pstate-epp, whose rule is not published. It is a \
             model (docs/simulator.md), and so is what a preference does. In packing and energy the agent prefers {saves} \
             ({}) on battery, where nobody else has chosen, as here; on mains, and in spread and balance, it leaves {}, \
             which {KERNEL} has too.",
            preferring(epp_of(saves).unwrap_or_default()),
            preferring(PREFERENCES[1]),
        ),
        &format!(
            "{NO_HWP}: intel_pstate without HWP, by its rule. Under sched_ext it is called only as a target is set, \
             which our modes do when it changes, and at each tick of a busy CPU: clocks stay where they are between \
             that, high or low."
        ),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ratio_is_of_systems_that_are_simulated() {
        for (name, governors) in MACHINES {
            let systems = systems(&Machine::find(name).unwrap());
            let apart = if governors.contains(&EPP) { apart() } else { Vec::new() };
            let as_set = governors.iter().flat_map(|governor| as_set(governor));
            for ratio in as_set.chain(apart) {
                assert!(systems.contains(&ratio.system), "{name}: {}", ratio.system);
                assert!(systems.contains(&ratio.other), "{name}: {}", ratio.other);
            }
        }
    }

    #[test]
    fn a_preference_that_is_named_is_the_one_that_goes_with_the_mode() {
        let case = DRAWN.simulate("handheld", "light", 2).unwrap();
        let same = |system: &str, other: &str| case.over(system, other).unwrap().mean() == 1.0;
        assert!(same("packing+epp", "packing+epp=192") && same("eevdf+epp", "eevdf+epp=128"));
        assert!(!same("packing+epp", "packing+epp=128"));
    }

    #[test]
    fn each_machine_has_its_governors_row() {
        let case = DRAWN.simulate("snb-4s", "audio", 2).unwrap();
        assert!(case.over("packing+intel-pstate", "eevdf+intel-pstate").is_some());
        assert!(case.over("packing+epp", "eevdf+epp").is_none(), "Sandy Bridge has no HWP");
    }
}
