//! The online CPUs as a machine file lists them: groups of cores of one kind that share a last-level
//! cache.

use crate::machine::topology::Ranks;

/// Cores of one kind, and of as many threads, in one LLC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// As [`Ranks::kinds`] counts them: 0 is the smallest.
    pub kind: usize,
    /// The largest of its CPUs', 1..=1024 of the machine's fastest.
    pub capacity: usize,
    /// Of each core.
    pub threads: usize,
    pub package: usize,
    pub node: usize,
    /// The kernel's number, which differs between packages.
    pub llc: usize,
    /// The CPUs of each core.
    pub cores: Vec<Vec<usize>>,
}

impl Group {
    /// Its CPUs, core by core.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        self.cores.iter().flatten().copied()
    }
}

/// A CPU with what puts it into a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    package: usize,
    llc: usize,
    kind: usize,
    threads: usize,
    core: usize,
    cpu: usize,
}

/// The groups, package by package and LLC by LLC, smaller kinds first.
pub fn of(ranks: &Ranks) -> Vec<Group> {
    let cpus: Vec<_> =
        ranks.cpus().iter().zip(ranks.kinds()).filter(|(cpu, _)| cpu.online).collect();
    let siblings = |package, core| {
        cpus.iter().filter(|(other, _)| (other.package, other.core) == (package, core)).count()
    };
    let mut places: Vec<(Place, usize, usize)> = cpus
        .iter()
        .map(|(cpu, kind)| {
            let threads = siblings(cpu.package, cpu.core);
            let (package, llc, core, cpu_nr) = (cpu.package, cpu.llc, cpu.core, cpu.cpu);
            (
                Place { package, llc, kind: *kind, threads, core, cpu: cpu_nr },
                cpu.node,
                cpu.capacity,
            )
        })
        .collect();
    places.sort_unstable();
    let key = |place: &Place| (place.package, place.llc, place.kind, place.threads);
    let groups = places.chunk_by(|(one, ..), (other, ..)| key(one) == key(other));
    groups
        .map(|members| {
            let (first, node, _) = members[0];
            let cores = members.chunk_by(|(one, ..), (other, ..)| one.core == other.core);
            Group {
                kind: first.kind,
                capacity: members.iter().map(|(.., capacity)| *capacity).max().unwrap_or(1),
                threads: first.threads,
                package: first.package,
                node,
                llc: first.llc,
                cores: cores.map(|core| core.iter().map(|(at, ..)| at.cpu).collect()).collect(),
            }
        })
        .collect()
}

/// Whether the `nth` group shares its LLC with the one before.
pub fn is_joined(groups: &[Group], nth: usize) -> bool {
    let llc = |group: &Group| (group.package, group.llc);
    nth > 0 && llc(&groups[nth - 1]) == llc(&groups[nth])
}

/// Packages that are numbered from 0 on.
pub fn nr_packages(groups: &[Group]) -> usize {
    groups.iter().map(|group| group.package + 1).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::topology::RankedCpu;

    #[test]
    fn cores_of_two_kinds_in_one_cache_are_two_groups_of_it() {
        // Threads numbered as on x86; the large core comes first there.
        let cpu = |cpu: usize, core, capacity| RankedCpu {
            cpu,
            core,
            llc: 3,
            package: 0,
            node: 0,
            capacity,
            online: true,
            isolated: false,
        };
        let cpus = vec![cpu(0, 0, 1024), cpu(1, 4, 560), cpu(2, 5, 540), cpu(3, 0, 1020)];
        let groups = of(&Ranks::of(cpus).unwrap());
        assert_eq!(groups.len(), 2);
        assert_eq!(
            (groups[0].cores.as_slice(), groups[0].capacity),
            (&[vec![1], vec![2]][..], 560)
        );
        assert_eq!((groups[1].cores.as_slice(), groups[1].threads), (&[vec![0, 3]][..], 2));
        assert!(is_joined(&groups, 1) && !is_joined(&groups, 0));
        assert_eq!(nr_packages(&groups), 1);
    }
}
