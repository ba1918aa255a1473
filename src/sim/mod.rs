//! `scx_powerpack sim`: systems on a simulated machine, side by side.

#[cfg(test)]
mod budget;
pub mod here;
#[cfg(test)]
mod properties;
mod report;
mod system;
mod tables;

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, Result, ensure};
use powerpack_sim::{Machine, Setup};
use powerpack_workload::Workload;

use crate::cli::{SimArgs, SimCommand};
pub use system::Named;

/// `scx_powerpack sim`. Fails with a sentence.
pub fn run(args: &SimArgs) -> Result<()> {
    match &args.command {
        Some(SimCommand::Table { name, picture }) => {
            tables::run(name.as_deref(), picture.as_deref())
        }
        Some(SimCommand::Draw { table, machine, load }) => tables::draw(table, machine, load),
        Some(SimCommand::Lab { machine }) => {
            let lab = Machine::find(machine)?.lab()?;
            println!("{}\n{}", lab.topology, lab.parameters);
            Ok(())
        }
        None => compare(args),
    }
}

/// A machine by its name; `here` is this one, with what is assumed of it.
fn machine(name: &str) -> Result<Machine> {
    if name != "here" {
        return Machine::find(name);
    }
    let (text, assumed) = here::describe()?;
    println!("An estimate for this machine. What sysfs does not say is assumed:");
    assumed.iter().for_each(|line| println!("- {line}"));
    println!();
    Machine::parse(&text).context("cannot simulate this machine")
}

/// Simulates every system named and prints a table.
/// Fails with a sentence on an unknown machine, workload or system.
fn compare(args: &SimArgs) -> Result<()> {
    let machine = machine(&args.machine)?;
    let workload = Workload::find(&args.workload)?;
    let systems = args.policy.iter().map(|name| name.parse()).collect::<Result<Vec<Named>>>()?;
    ensure!(
        args.trace.is_none() || systems.len() == 1,
        "--trace records one system: name it with --policy"
    );
    let seconds = args.until.as_secs_f64();
    let setup = Setup {
        trace: args.trace.is_some(),
        ..Setup::new(&machine, &workload, seconds, args.seed)
    };
    println!("{}: {}\n{}: {}\n", machine.name, machine.about, workload.name, workload.about);
    let mut rows = Vec::new();
    for system in systems {
        let (outcome, trace) = powerpack_sim::run(&setup, &system.on(&machine)?)?;
        if let (Some(trace), Some(path)) = (trace, &args.trace) {
            let file = File::create(path)
                .with_context(|| format!("cannot write the trace to {}", path.display()))?;
            trace.write(BufWriter::new(file)).context("cannot write the trace")?;
        }
        rows.push((system, outcome));
    }
    report::print(&machine, &workload, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use powerpack_sim::{Governor, Outcome};

    fn light(system: &str) -> Outcome {
        let (machine, workload) = (Machine::find("vm4").unwrap(), Workload::find("light").unwrap());
        let setup = Setup::new(&machine, &workload, 20.0, 1);
        let system = system.parse::<Named>().unwrap().on(&machine).unwrap();
        powerpack_sim::run(&setup, &system).unwrap().0
    }

    /// docs/bench-baseline.md has the same of the real kernel.
    #[test]
    fn the_light_load_is_packed_on_one_cpu_and_spread_over_four() {
        let packing = light("packing");
        assert!(packing.beyond_busiest_pct < 0.1, "{packing:?}");
        assert!((28.0..29.0).contains(&packing.non_idle_pct[0]), "{packing:?}");
        assert!(packing.overruns == 0 && packing.tasks.iter().all(|task| task.max_us < 6000.0));
        let spread = light("spread");
        assert!(spread.non_idle_pct.iter().all(|&pct| pct > 3.0), "{spread:?}");
    }

    #[test]
    fn the_same_input_gives_the_same_output() {
        for system in ["packing", "spread", "3.9", "pas-v7"] {
            assert_eq!(light(system), light(system));
        }
    }

    fn run(machine: &str, workload: &Workload, system: &str) -> Outcome {
        let machine = Machine::find(machine).unwrap();
        let system = system.parse::<Named>().unwrap().on(&machine).unwrap();
        powerpack_sim::run(&Setup::new(&machine, workload, 5.0, 1), &system).unwrap().0
    }

    #[test]
    fn a_task_too_large_for_a_small_core_moves_to_a_large_one() {
        let task = Workload::find("4/10").unwrap();
        let before = run("chromebook2", &task, "3.9").overruns;
        let packing = run("chromebook2", &task, "packing").overruns;
        assert!(before > 100 && packing < 10, "{packing}, and {before} where it stays");
    }

    #[test]
    fn a_small_core_is_better_than_half_a_large_one() {
        let hogs = Workload::find("native8").unwrap();
        // Four large cores, and four of 560 to 1024: 6.2; eight threads of four cores: 5.0.
        assert!(run("hybrid-laptop", &hogs, "packing").throughput > 6.0);
    }

    /// How many CPUs four light tasks use that begin together and then rarely wake at the same
    /// time, if their cgroup is treated so; none: as the mode says.
    fn used_by_light_tasks(treatment: Option<&str>, system: &str) -> usize {
        let treatment = treatment.map(|name| format!("workload='{name}'\n")).unwrap_or_default();
        let task = |period_ms| {
            format!("[[task]]\nperiodic={{run_ms=0.5,period_ms={period_ms}}}\n{treatment}")
        };
        let text = "name='x'\nabout=''\n".to_owned() + &[20, 21, 23, 26].map(task).concat();
        let outcome = run("vm8", &Workload::parse(&text).unwrap(), system);
        outcome.non_idle_pct.iter().filter(|&&pct| pct > 1.0).count()
    }

    /// The target of a new task is everything; firmware that prefers power lets no CPU run at more than
    /// 0.63 of 3500 MHz, for which 2400 is enough.
    #[test]
    fn firmware_does_not_hear_what_a_scheduler_requests() {
        let hog = Workload::find("hog").unwrap();
        let throughput =
            |governor: &str| run("handheld", &hog, &format!("packing+{governor}")).throughput;
        assert!(throughput("schedutil") > 0.98, "{}", throughput("schedutil"));
        let share = throughput("epp=255");
        assert!((share - 2400.0 / 3500.0).abs() < 0.02, "{share}");
    }

    #[test]
    fn a_preference_goes_with_the_mode_if_none_is_named() {
        let machine = Machine::find("handheld").unwrap();
        let governor =
            |text: &str| text.parse::<Named>().unwrap().on(&machine).unwrap().governor.unwrap();
        for (system, epp) in [
            ("packing+epp", Some(192)),
            ("energy+epp", Some(192)),
            ("spread+epp", None),
            ("eevdf+epp", None),
            ("packing+epp=128", Some(128)),
        ] {
            assert_eq!(governor(system), Governor::Epp(epp), "{system}");
        }
        assert_eq!(governor("packing"), machine.governor);
    }

    #[test]
    fn the_table_of_workloads_decides_in_every_mode() {
        for (system, untreated) in [("packing", 1), ("balance", 4), ("spread", 4)] {
            assert_eq!(used_by_light_tasks(None, system), untreated, "{system}");
            assert_eq!(used_by_light_tasks(Some("spread"), system), 4, "{system}");
        }
        assert_eq!(used_by_light_tasks(Some("pack"), "spread"), 1);
    }

    #[test]
    fn efficient_workloads_wait_for_the_efficient_cores_in_every_mode() {
        let hogs = "name='x'\nabout=''\n[[task]]\nhog=true\ncount=3\n";
        let used = |text: &str, system| {
            let outcome = run("vm8", &Workload::parse(text).unwrap(), system);
            outcome.non_idle_pct.iter().filter(|&&pct| pct > 2.0).count()
        };
        for system in ["packing", "balance", "spread"] {
            assert_eq!(used(hogs, system), 3, "{system}");
            // A quarter of eight.
            assert_eq!(used(&format!("{hogs}workload='efficient'\n"), system), 2, "{system}");
        }
    }

    #[test]
    fn balance_uses_one_llc_while_that_is_enough_and_all_of_it() {
        let load = Workload::find("stairs-20").unwrap();
        let balance = run("dual-quad", &load, "balance").non_idle_pct;
        assert!(balance[..4].iter().all(|&pct| pct > 10.0), "{balance:?}");
        assert!(balance[4..].iter().sum::<f64>() < 5.0, "{balance:?}");
    }

    #[test]
    fn large_tasks_are_not_packed_if_only_small_ones_are_to_be() {
        let text = "name='x'\nabout=''\nphases='even'\n[[task]]\nperiodic={run_ms=5,period_ms=20}\n\
                    count=2\n[[task]]\nperiodic={run_ms=0.2,period_ms=20}\ncount=10\n";
        let load = Workload::parse(text).unwrap();
        let used = |system| {
            run("vm8", &load, system).non_idle_pct.iter().filter(|&&pct| pct > 5.0).count()
        };
        // The large ones take turns.
        assert_eq!((used("packing"), used("packing:small")), (1, 2));
    }

    #[test]
    fn machines_of_today_have_the_cpus_and_caches_of_their_parts() {
        let counts = |name| {
            let machine = Machine::find(name).unwrap();
            let packages = machine.cpus().iter().map(|cpu| cpu.package).max().unwrap() + 1;
            (machine.cpus().len(), machine.nr_llcs(), packages)
        };
        assert_eq!(counts("laptop-lpe"), (22, 2, 1));
        assert_eq!(counts("apu-2ccx"), (16, 2, 1));
        assert_eq!(counts("handheld"), (8, 1, 1));
        assert_eq!(counts("server-2x64"), (128, 32, 2));
    }

    #[test]
    fn a_trace_is_json_and_the_same_each_time() {
        let (machine, workload) =
            (Machine::find("hybrid-laptop").unwrap(), Workload::find("desktop").unwrap());
        let trace = || {
            let setup = Setup { trace: true, ..Setup::new(&machine, &workload, 1.0, 7) };
            let system = "packing".parse::<Named>().unwrap().on(&machine).unwrap();
            let mut bytes = Vec::new();
            powerpack_sim::run(&setup, &system).unwrap().1.unwrap().write(&mut bytes).unwrap();
            bytes
        };
        let bytes = trace();
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        assert!(of("X") > 100 && of("C") > 10 && of("M") == 19, "tracks, counters and names");
        assert_eq!(bytes, trace());
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let text = format!("{:#}", Machine::find("vm5").unwrap_err());
        assert!(text.starts_with("there is no machine 'vm5': choose one of "), "{text}");
        let text = Workload::parse("name=\"x\"\nabout=\"\"\n[[task]]\n").unwrap_err().to_string();
        assert!(text.starts_with("a task is one of periodic, "), "{text}");
        for (system, said) in [
            ("turbo", "unknown scheduler 'turbo': choose one of spread, balance, packing"),
            ("packing+turbo", "there is no frequency governor 'turbo'"),
            ("3.9@2", "only our modes have knobs"),
        ] {
            let text = system.parse::<Named>().unwrap_err().to_string();
            assert!(text.starts_with(said), "{text}");
        }
    }
}
