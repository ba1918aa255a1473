//! What `scx_powerpack calibrate` has measured of this machine, for the agent.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use powerpack_sim::Machine;

use crate::machine::layout::{self, Group};
use crate::machine::power_model::CpuPower;
use crate::machine::topology::Ranks;

/// Where it is.
pub const FILE: &str = "/var/lib/scx_powerpack/machine.toml";

/// By CPU (mW).
pub type Calibrated = BTreeMap<usize, CpuPower>;

/// What the machine file at `path` says of this machine's CPUs; `None` if there is no file. Fails with a
/// sentence if it cannot be read, or is of a machine with other CPUs.
pub fn read(path: &Path, ranks: &Ranks) -> Result<Option<Calibrated>> {
    let text = match fs::read_to_string(path) {
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let machine = Machine::parse(&text).with_context(|| path.display().to_string())?;
    of_file(&machine, &layout::of(ranks)).with_context(|| path.display().to_string()).map(Some)
}

fn of_file(machine: &Machine, groups: &[Group]) -> Result<Calibrated> {
    let cpus = machine.cpus();
    let (places, llcs) = places_of(groups);
    // What sleeps for itself is an LLC in the file, and may be a part of one.
    let is_part = cpus
        .windows(2)
        .zip(llcs.windows(2))
        .all(|(file, ours)| file[0].llc != file[1].llc || ours[0] == ours[1]);
    ensure!(
        is_part && cpus.iter().map(|cpu| (cpu.core, cpu.package, cpu.capacity)).eq(places),
        "it is of a machine with other CPUs, or some are offline: run scx_powerpack calibrate again"
    );
    let powers = cpus.iter().map(|cpu| CpuPower::of_file(machine, cpu));
    Ok(groups.iter().flat_map(Group::cpus).zip(powers).collect())
}

/// Of each CPU core, package and capacity, numbered as a machine file has them; and its LLC.
fn places_of(groups: &[Group]) -> (Vec<(usize, usize, usize)>, Vec<usize>) {
    // A file has one capacity for all cores of a kind: the largest.
    let key = |group: &Group| (group.kind, group.threads);
    let capacity = |of: &Group| {
        let same = groups.iter().filter(|group| key(group) == key(of));
        same.map(|group| group.capacity).max().unwrap_or(of.capacity)
    };
    let (mut core, mut llc) = (0, 0);
    let (mut places, mut llcs) = (vec![], vec![]);
    for (nth, group) in groups.iter().enumerate() {
        llc += usize::from(nth > 0 && !layout::is_joined(groups, nth));
        for cpus in &group.cores {
            places.extend(cpus.iter().map(|_| (core, group.package, capacity(group))));
            llcs.extend(cpus.iter().map(|_| llc));
            core += 1;
        }
    }
    (places, llcs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use powerpack_sim::MACHINES;

    /// Cores from `first` on, of one thread.
    fn group(first: usize, kind: usize, capacity: usize, llc: usize) -> Group {
        let cores = (first..first + 4).map(|cpu| vec![cpu]).collect();
        Group { kind, capacity, threads: 1, package: 0, node: 0, llc, cores }
    }

    #[test]
    fn a_file_is_taken_for_the_machine_that_it_is_of_alone() {
        let machine = Machine::find("chromebook2").unwrap();
        // The small ones are the later ones here.
        let mut groups = [group(4, 0, 260, 7), group(0, 1, 1024, 9)];
        let calibrated = of_file(&machine, &groups).unwrap();
        let fastest = |cpu: usize| calibrated[&cpu].points.last().unwrap().power;
        assert_eq!((fastest(4), fastest(0)), (213.0, 1192.0), "beyond what it takes when off");
        let (_, text) = MACHINES.iter().find(|(name, _)| *name == "chromebook2").unwrap();
        let text = text.replace("core = \"a15\"\ncores", "joined = true\ncore = \"a15\"\ncores");
        let one_cache = Machine::parse(&text).unwrap();
        assert!(of_file(&one_cache, &groups).is_err(), "one cache of two");
        groups[1].llc = 7;
        assert!(of_file(&one_cache, &groups).is_ok());
        assert!(of_file(&machine, &groups).is_ok(), "two parts of one cache");
        let phone = Machine::find("phone").unwrap();
        let said = of_file(&phone, &groups).unwrap_err().to_string();
        assert!(said.contains("other CPUs"), "{said}");
        groups[1].capacity = 1000;
        let said = of_file(&machine, &groups).unwrap_err().to_string();
        assert!(said.contains("other CPUs"), "{said}");
        groups[1].capacity = 1024;
        groups[0].cores.pop();
        assert!(of_file(&machine, &groups).is_err());
    }

    #[test]
    fn no_file_is_no_mistake_and_a_bad_one_is() {
        let ranks = crate::machine::topology::tests::machine(1, 4, 1);
        assert!(read(Path::new("/nowhere/machine.toml"), &ranks).unwrap().is_none());
        let path = std::env::temp_dir().join(format!("calibrated-{}", std::process::id()));
        fs::write(&path, "name = 3").unwrap();
        assert!(read(&path, &ranks).is_err());
        fs::remove_file(path).unwrap();
    }
}
