//! Which blocks are measured: each holds the machine in one state for some seconds, and all of them together
//! tell the figures apart.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::subject::Subject;
use crate::machine::layout::Group;

/// The idle machine is measured as often: at the beginning, in the middle and at the end.
const NR_IDLE: usize = 3;
/// Wake-ups are this many times as far apart as the deepest state must last, so that it is chosen
/// between them,
const WAKE_RESIDENCIES: f64 = 2.0;
/// and twice that; the more often, the better the energy of each is known.
const WAKE_FACTORS: [f64; 4] = [1.0, 1.0, 1.0, 2.0];
/// Without idle states (us).
const WAKE_DEFAULT_US: f64 = 1000.0;

/// What is held for a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// For the user.
    pub what: String,
    /// CPUs that compute without a pause.
    pub busy: Vec<usize>,
    /// A CPU that is woken, and how often (ns).
    pub waking: Option<(usize, u64)>,
    /// CPUs that may go only as deep as that idle state of their kind.
    pub limits: BTreeMap<usize, usize>,
    /// The frequency of each kind, by its number among those that are measured.
    pub khz: Vec<usize>,
}

/// A block in which nothing computes takes as many times longer: a hundredth of what a CPU takes at work
/// is as much to it as that.
const QUIET_TIMES: u32 = 2;

impl Block {
    /// For how long it is measured, where the meter wants `length` of a busy machine.
    pub fn length(&self, length: Duration) -> Duration {
        if self.busy.is_empty() { length * QUIET_TIMES } else { length }
    }
}

/// All blocks, in the order in which they are measured.
pub fn blocks(subject: &Subject) -> Vec<Block> {
    let mut blocks = vec![];
    let (mut kinds, mut classes) = (BTreeSet::new(), BTreeSet::new());
    for (group, class) in subject.groups.iter().zip(subject.class_of_group()) {
        let is_new_class = classes.insert(class);
        if kinds.insert(group.kind) {
            blocks.extend(of_kind(subject, group));
        } else if is_new_class {
            blocks.push(busy(subject, group, 1, 1, 0));
        }
    }
    let sets = together(subject);
    blocks.extend(sets.iter().map(|groups| awake(subject, groups)));
    let idle = Block { what: "idle".into(), khz: vec![0; subject.kinds.len()], ..Block::default() };
    // From the last to the first, so that places stay.
    for nth in (0..NR_IDLE).rev() {
        blocks.insert(blocks.len() * nth / (NR_IDLE - 1), idle.clone());
    }
    blocks
}

/// One core and all of the group at each frequency, in each idle state, and woken.
fn of_kind(subject: &Subject, group: &Group) -> Vec<Block> {
    let kind = &subject.kinds[group.kind];
    let all = group.cores.len();
    let counts = if all > 1 { vec![1, all] } else { vec![1, 1] };
    let mut blocks = vec![];
    for nth in 0..kind.khz.len().max(1) {
        blocks.extend(counts.iter().map(|&cores| busy(subject, group, cores, 1, nth)));
    }
    if group.threads > 1 {
        let highest = kind.khz.len().max(1) - 1;
        let siblings = |&cores| busy(subject, group, cores, group.threads, highest);
        blocks.extend(counts.iter().map(siblings));
    }
    // As deep as it likes is the idle machine.
    for nth in 0..kind.idle.len().max(1) - 1 {
        blocks.extend(counts.iter().map(|&cores| limited(subject, group, cores, nth)));
    }
    let apart_us = match kind.deepest_residency_us() {
        0.0 => WAKE_DEFAULT_US,
        us => us * WAKE_RESIDENCIES,
    };
    let alone = WAKE_FACTORS.map(|factor| woken(subject, group, apart_us * factor));
    let beside = beside(subject, group, &alone[0]);
    blocks.extend(alone);
    // What is around it is asleep in one, and awake in the other.
    blocks.extend(beside.into_iter().flat_map(|block| [block.clone(), block]));
    blocks
}

/// A core of the group is woken as in `alone` while another one, of the same group or LLC, is kept awake; `None` if
/// there is no other.
fn beside(subject: &Subject, group: &Group, alone: &Block) -> Option<Block> {
    let llc = |other: &&Group| (other.package, other.llc) == (group.package, group.llc);
    let first = &group.cores[0];
    let own = group.cores.iter().map(|core| (group, core));
    let others = subject.groups.iter().filter(llc).map(|other| (other, &other.cores[0]));
    let (other, core) = own.chain(others).find(|(_, core)| *core != first)?;
    let mut block = Block { what: format!("{}, another awake", alone.what), ..alone.clone() };
    keep_awake(subject, &mut block, other, core);
    Some(block)
}

/// The first `cores` of the group compute, with so many threads each.
fn busy(subject: &Subject, group: &Group, cores: usize, threads: usize, nth: usize) -> Block {
    let kind = &subject.kinds[group.kind];
    let mut khz = vec![0; subject.kinds.len()];
    khz[group.kind] = nth;
    let at = kind.khz.get(nth).map(|khz| format!(" at {} MHz", khz / 1000)).unwrap_or_default();
    let each = if threads > 1 { format!(", {threads} threads each") } else { String::new() };
    let of = name(group);
    let first = group.cores.iter().take(cores);
    Block {
        what: format!("{cores} of {of} busy{at}{each}"),
        busy: first.flat_map(|core| core.iter().take(threads).copied()).collect(),
        khz,
        ..Block::default()
    }
}

fn limited(subject: &Subject, group: &Group, cores: usize, nth: usize) -> Block {
    let cpus = group.cores.iter().take(cores).flatten();
    let (state, of) = (&subject.kinds[group.kind].idle[nth].name, name(group));
    Block {
        what: format!("{cores} of {of} in {state}"),
        limits: cpus.map(|&cpu| (cpu, nth)).collect(),
        khz: vec![0; subject.kinds.len()],
        ..Block::default()
    }
}

fn woken(subject: &Subject, group: &Group, apart_us: f64) -> Block {
    Block {
        what: format!("1 of {} woken {:.0} times a second", name(group), 1e6 / apart_us),
        waking: Some((group.cores[0][0], (apart_us * 1e3) as u64)),
        khz: vec![0; subject.kinds.len()],
        ..Block::default()
    }
}

/// What is kept awake at once: groups of an LLC that has several, and LLCs of a package, two of them
/// and all. One alone cannot be distinguished from what is around it.
fn together(subject: &Subject) -> Vec<Vec<usize>> {
    let (groups_of_llc, classes) = (subject.groups_of_llc(), subject.class_of_llc());
    let mut sets: Vec<Vec<usize>> = vec![];
    for (llc, groups) in groups_of_llc.iter().enumerate() {
        if !classes[..llc].contains(&classes[llc]) {
            sets.push(groups.clone());
        }
    }
    // The first group of each LLC of the first package.
    sets.push(subject.llcs_of_package(0).iter().map(|&llc| groups_of_llc[llc][0]).collect());
    sets.retain(|groups| groups.len() > 1);
    sets.iter().flat_map(|groups| [groups[..2].to_vec(), groups.clone()]).collect()
}

/// A core of each group keeps it awake: in the shallowest idle state or, where there is none, computing.
fn awake(subject: &Subject, groups: &[usize]) -> Block {
    let mut block = Block {
        what: format!("{} groups of cores awake", groups.len()),
        khz: vec![0; subject.kinds.len()],
        ..Block::default()
    };
    for group in groups.iter().map(|&nth| &subject.groups[nth]) {
        keep_awake(subject, &mut block, group, &group.cores[0]);
    }
    block
}

/// Keeps `core` of the group awake in `block`.
fn keep_awake(subject: &Subject, block: &mut Block, group: &Group, core: &[usize]) {
    if subject.kinds[group.kind].idle.len() > 1 {
        block.limits.extend(core.iter().map(|&cpu| (cpu, 0)));
    } else {
        block.busy.push(core[0]);
    }
}

fn name(group: &Group) -> String {
    format!("{} cores of capacity {}", group.cores.len(), group.capacity)
}
