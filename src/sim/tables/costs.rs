//! What the scheduler's own code costs at each event, by how many CPUs there are: time, or, in a build with
//! the feature `count-costs`, basic blocks, atomic operations and cache lines that other CPUs have.

use std::fmt::Write;

use anyhow::Result;
use powerpack_sim::costs::{self, COUNTS, Cost, Event, Tally};
use powerpack_sim::{Machine, Setup};
use powerpack_workload::Workload;

use super::{SEED, head, notes, row, simulate_setup};

/// Each four times the one before, up to what there is room for.
const CPUS: [usize; 5] = [4, 16, 64, 256, 1024];
/// What shares a cache, and what shares memory, on machines that have as many.
const LLC_CPUS: usize = 16;
const NODE_CPUS: usize = 256;
const SECONDS: f64 = 0.2;

type Tallies = [Tally; Event::ALL.len()];

/// A machine of so many CPUs.
fn machine(cpus: usize) -> Result<Machine> {
    let mut text = String::from(
        "name = \"costs\"\nabout = \"\"\ngovernor = \"performance\"\n[costs]\nhz = 250\nswitch_us = 2\nwake_us = 4\n\
         migrate_us = 10\nmigrate_far_us = 40\nirq_us = 3\n",
    );
    for first in (0..cpus).step_by(LLC_CPUS) {
        let node = first / NODE_CPUS;
        let cores = LLC_CPUS.min(cpus);
        write!(text, "[[llc]]\ncores = {cores}\npackage = {node}\nnode = {node}\n")?;
    }
    Machine::parse(&text)
}

/// A load for so many CPUs, by name: `busy`, more than they can do, or `half` of that. A part of the tasks may run
/// on some of the CPUs alone.
fn load(name: &str, cpus: usize) -> Result<Workload> {
    let mut text = format!("name = \"{name}\"\nabout = \"\"\n");
    let mut tasks = |count: usize, what: &str| write!(text, "[[task]]\ncount = {count}\n{what}\n");
    if name == "busy" {
        tasks(cpus, "hog = true")?;
    }
    tasks(cpus, "jitter_pct = 20\nperiodic = { run_ms = 0.5, period_ms = 5 }")?;
    tasks(cpus, "jitter_pct = 20\nperiodic = { run_ms = 2, period_ms = 10 }")?;
    let confined = format!("cpus = \"0-{}\"\n", cpus * 3 / 4 - 1);
    tasks(
        cpus / 2,
        &format!("{confined}jitter_pct = 20\nperiodic = {{ run_ms = 1, period_ms = 8 }}"),
    )?;
    Workload::parse(&text)
}

/// What `system` costs by event with `load` on so many CPUs.
fn measured(cpus: usize, load_name: &str, system: &str) -> Result<Tallies> {
    let (machine, load) = (machine(cpus)?, load(load_name, cpus)?);
    let setup = Setup { settle_s: 0.1, ..Setup::new(&machine, &load, SECONDS, SEED) };
    costs::record();
    let outcome = simulate_setup(&setup, system);
    let tallies = costs::take();
    outcome.map(|_| tallies)
}

/// The columns of this build: a name, the figure, and whether its mean or its maximum.
type Column = (&'static str, fn(&Cost) -> u64, bool);
const TIMES: [Column; 1] = [("mean ns", |cost| cost.ns, true)];
const COUNTED: [Column; 6] = [
    ("blocks", |cost| cost.blocks, true),
    ("most", |cost| cost.blocks, false),
    ("atomic operations", |cost| cost.atomics, true),
    ("most", |cost| cost.atomics, false),
    ("lines of other CPUs", |cost| cost.lines, true),
    ("calls for a DSQ", |cost| cost.dsqs, true),
];

pub fn print() -> Result<()> {
    let columns: &[Column] = if COUNTS { &COUNTED } else { &TIMES };
    let mut names = vec!["system", "load", "event", "CPUs", "events"];
    names.extend(columns.iter().map(|(name, ..)| name));
    if !COUNTS {
        names.extend(["median ns", "99.9th percentile"]);
    }
    head(&names);
    for system in ["packing", "spread"] {
        for load in ["busy", "half"] {
            let by_cpus: Vec<Tallies> =
                CPUS.iter().map(|&cpus| measured(cpus, load, system)).collect::<Result<_>>()?;
            for event in Event::ALL {
                for (cpus, tallies) in CPUS.iter().zip(&by_cpus) {
                    print_row(
                        [system, load, event.name()],
                        *cpus,
                        &tallies[event as usize],
                        columns,
                    );
                }
            }
        }
    }
    notes(&[
        "`busy`: hogs on all CPUs, and shorter tasks; `half`: the shorter ones alone. A fifth of them may run on \
         three quarters of the CPUs only. LLCs of 16 CPUs, memory nodes of 256.",
        "A block is what runs without a branch: some five instructions. What the kernel does is not in it, but for how \
         often it is asked for a DSQ, most of which take a lock.",
        "A line of other CPUs is one that has to come from, or be given up by, another CPU's cache.",
    ]);
    Ok(())
}

fn print_row(names: [&str; 3], cpus: usize, tally: &Tally, columns: &[Column]) {
    let mut cells: Vec<String> = names.map(str::to_owned).to_vec();
    cells.extend([cpus.to_string(), tally.events.len().to_string()]);
    for (_, figure, is_mean) in columns {
        cells.push(match is_mean {
            true => format!("{:.1}", tally.mean(figure)),
            false => tally.max(figure).to_string(),
        });
    }
    if !COUNTS {
        let mut ns: Vec<u64> = tally.events.iter().map(|cost| cost.ns).collect();
        ns.sort_unstable();
        let at = |share: f64| ns.get((ns.len() as f64 * share) as usize).copied().unwrap_or(0);
        cells.extend([at(0.5).to_string(), at(0.999).to_string()]);
    }
    row(cells);
}

#[cfg(all(test, feature = "count-costs"))]
mod tests {
    use super::*;

    /// What an event may cost on 1,024 CPUs, over what it does on 4.
    const GROWTH_MAX: f64 = 1.25;
    /// A tick looks at other LLCs too, of which the smaller machine has none.
    const TICK_GROWTH_MAX: f64 = 1.4;
    /// At a tick a run counts for its queue's clock, an atomic operation, if others wait in that: on the many CPUs of this
    /// load they do in 0.8 of the queues, on the few in a half.
    const TICK_ATOMICS_SLACK: f64 = 0.3;
    const SLACK: f64 = 0.05;
    /// What one call may run with interrupts off: some 10 us.
    const BLOCKS_MAX: u64 = 4500;

    #[test]
    fn an_event_costs_as_much_on_a_thousand_cpus_as_on_four() {
        for system in ["packing", "spread"] {
            let [few, many] = [4, 1024].map(|cpus| measured(cpus, "busy", system).unwrap());
            for event in Event::ALL {
                let (few, many) = (&few[event as usize], &many[event as usize]);
                let most = many.max(|cost| cost.blocks);
                assert!(most <= BLOCKS_MAX, "{system}, {}: {most} blocks", event.name());
                // No CPU goes idle but by chance.
                if event == Event::IdleEntry {
                    continue;
                }
                assert!(few.events.len() > 100 && many.events.len() > 10_000, "{}", event.name());
                let growth_max = if event == Event::Tick { TICK_GROWTH_MAX } else { GROWTH_MAX };
                for (figure, of) in [
                    ("blocks", (|cost| cost.blocks) as fn(&Cost) -> u64),
                    ("atomic operations", |cost| cost.atomics),
                    ("calls for a DSQ", |cost| cost.dsqs),
                ] {
                    let (few, many) = (few.mean(of), many.mean(of));
                    let what = format!("{system}, {}, {figure}: {few:.1}, {many:.1}", event.name());
                    let tick_atomics = event == Event::Tick && figure == "atomic operations";
                    let slack = if tick_atomics { TICK_ATOMICS_SLACK } else { SLACK };
                    assert!(many <= few * growth_max + slack, "{what}");
                }
            }
        }
    }
}
