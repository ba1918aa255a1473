//! How figures make up the power of a block:
//!
//!     power = what the idle machine takes
//!           + of each core: its share of time at work, and in each idle state, times what that takes
//!             beyond the deepest one; and of wake-ups the energy of each
//!           + of each group of cores, LLC of several groups, and package of several LLCs: the share of
//!             time in which any of its CPUs is not in its deepest state times what it takes more
//!
//! Of sums of what is always there no meter can say which part takes it: that is the first line.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::fit::{Estimate, Fit, fit};
use super::plan::Block;
use super::subject::Subject;

/// What was seen of a block.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub power_mw: f64,
    /// Of each CPU the share of time in each idle state of its kind.
    pub idle: BTreeMap<usize, Vec<f64>>,
    /// How often each CPU was woken a second: out of a shallow state counts by its exit latency as a part of the
    /// deepest one's.
    pub wakes_per_s: BTreeMap<usize, f64>,
    /// Of the CPUs at work; `None` without cpufreq.
    pub mhz: Option<f64>,
}

/// What is to be found; kinds, frequencies, states and classes of LLCs by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// What the idle machine takes (mW).
    Floor,
    /// What a core of a kind takes at a frequency, beyond its deepest idle state (mW).
    Work { kind: usize, khz: usize },
    /// What another thread of a busy core takes (mW).
    Sibling { kind: usize },
    /// What a core takes in an idle state, beyond the deepest (mW).
    Idle { kind: usize, state: usize },
    /// The energy to wake a core and all around it out of the deepest state, at its lowest
    /// frequency (uJ: mW at a thousand wake-ups a second).
    Wake { kind: usize },
    /// The same where others keep awake what is around it: from that on the core alone wakes.
    WakeBeside { kind: usize },
    /// What a group of cores takes more because any of them is awake (mW): its cache, if that is its alone.
    Group { class: usize },
    /// What an LLC of several groups takes more because it is awake (mW).
    Llc { class: usize },
    /// What is around a core takes less, where a state between shallowest and deepest already lets them
    /// sleep (mW).
    Sleeps { kind: usize, state: usize },
    /// What a package takes more because it is awake (mW).
    Package,
}

/// Figures with what explains the blocks least well (share).
#[derive(Debug)]
pub struct Model {
    pub figures: BTreeMap<Figure, Estimate>,
    /// As [`Fit`] has it.
    variance: f64,
    pub worst_share: f64,
}

/// A wake-up a second is that many mW by uJ.
const MW_PER_UW: f64 = 1e-3;

/// A unit that takes less than this many times its error is taken for nothing.
const SURE_ERRORS: f64 = 2.0;

/// What has to be awake already for a core's wake-up to be of the core alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    /// Its group: clusters with switches of their own, also below one cache.
    Group,
    /// Its LLC.
    Llc,
}

/// Finds the figures: of the two ways in which wake-ups may depend on what is around them the one that
/// explains the blocks better. Fails with a sentence.
pub fn find(subject: &Subject, seen: &[(Block, Seen)]) -> Result<Model> {
    let (group, llc) =
        (find_with(subject, seen, Around::Group), find_with(subject, seen, Around::Llc));
    match (group, llc) {
        (Ok(group), Ok(llc)) if llc.variance < group.variance => Ok(llc),
        (Err(_), llc) => llc,
        (group, _) => group,
    }
}

/// Of what sleeps as a whole the part that is within its error is left out, the least known first: the
/// others are known the better.
fn find_with(subject: &Subject, seen: &[(Block, Seen)], around: Around) -> Result<Model> {
    let rows: Vec<_> = seen.iter().map(|(block, seen)| row(subject, block, seen, around)).collect();
    let mut all: BTreeSet<Figure> = rows.iter().flat_map(|row| row.keys().copied()).collect();
    loop {
        let factors = |row: &BTreeMap<Figure, f64>| {
            all.iter().map(|figure| row.get(figure).copied().unwrap_or(0.0)).collect()
        };
        let rows: Vec<_> =
            rows.iter().zip(seen).map(|(row, (_, seen))| (factors(row), seen.power_mw)).collect();
        let Fit { figures, variance, worst_share } = fit(&rows)?;
        let figures: BTreeMap<_, _> = all.iter().copied().zip(figures).collect();
        let Some(none) = least_known_unit(&figures) else {
            return Ok(Model { figures, variance, worst_share });
        };
        all.remove(&none);
    }
}

/// Of the units the one that is nothing, as far as is known.
fn least_known_unit(figures: &BTreeMap<Figure, Estimate>) -> Option<Figure> {
    let is_unit = |figure: &Figure| {
        matches!(figure, Figure::Group { .. } | Figure::Llc { .. } | Figure::Package)
    };
    let ratio = |estimate: &Estimate| estimate.value / estimate.error.max(f64::MIN_POSITIVE);
    let units = figures.iter().filter(|(figure, _)| is_unit(figure));
    let (figure, estimate) = units.min_by(|a, b| ratio(a.1).total_cmp(&ratio(b.1)))?;
    (ratio(estimate) < SURE_ERRORS).then_some(*figure)
}

/// What counts how often in a block. Nothing is in it of which there is none.
fn row(subject: &Subject, block: &Block, seen: &Seen, around: Around) -> BTreeMap<Figure, f64> {
    let mut row = BTreeMap::from([(Figure::Floor, 1.0)]);
    let mut add = |figure, factor: f64| {
        if factor != 0.0 {
            *row.entry(figure).or_insert(0.0) += factor;
        }
    };
    // The shares of time in which all of their CPUs are in their deepest state.
    let mut groups_asleep = vec![];
    let kept = kept_awake(subject, block, around);
    for (group, is_kept) in subject.groups.iter().zip(kept) {
        let kind = group.kind;
        let mut asleep = 1.0;
        for core in &group.cores {
            let of = CoreTime::of(subject, kind, core, block, seen);
            add(Figure::Work { kind, khz: block.khz[kind] }, of.work);
            add(Figure::Sibling { kind }, of.siblings);
            for (state, share) in of.idle.iter().rev().skip(1).rev().enumerate() {
                add(Figure::Idle { kind, state }, *share);
            }
            let wake = if is_kept { Figure::WakeBeside { kind } } else { Figure::Wake { kind } };
            add(wake, of.wakes_per_s * MW_PER_UW);
            asleep *= of.deepest;
        }
        groups_asleep.push(asleep);
    }
    for (figure, groups) in units(subject) {
        let asleep: f64 = groups.iter().map(|&nth| groups_asleep[nth]).product();
        add(figure, 1.0 - asleep);
    }
    if let Some((kind, state)) = sleeps(subject, block) {
        add(Figure::Sleeps { kind, state }, -1.0);
    }
    row
}

/// By group: whether a CPU keeps awake what is around it, all the time.
fn kept_awake(subject: &Subject, block: &Block, around: Around) -> Vec<bool> {
    let is_awake = |cpu: usize| block.busy.contains(&cpu) || block.limits.contains_key(&cpu);
    let awake: Vec<bool> = subject.groups.iter().map(|group| group.cpus().any(is_awake)).collect();
    if around == Around::Group {
        return awake;
    }
    let groups_of_llc = subject.groups_of_llc();
    let of_llc = |llc: usize| groups_of_llc[llc].iter().any(|&nth| awake[nth]);
    subject.llcs().into_iter().map(of_llc).collect()
}

/// What sleeps as a whole, and its groups. What has only one part cannot be distinguished from that.
fn units(subject: &Subject) -> Vec<(Figure, Vec<usize>)> {
    let (class_of_group, class_of_llc) = (subject.class_of_group(), subject.class_of_llc());
    let several = |nth: &usize| subject.groups[*nth].cores.len() > 1;
    let mut units: Vec<_> = (0..subject.groups.len())
        .filter(several)
        .map(|nth| (Figure::Group { class: class_of_group[nth] }, vec![nth]))
        .collect();
    for (llc, groups) in subject.groups_of_llc().into_iter().enumerate() {
        if groups.len() > 1 {
            units.push((Figure::Llc { class: class_of_llc[llc] }, groups));
        }
    }
    let mut packages: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (nth, group) in subject.groups.iter().enumerate() {
        packages.entry(group.package).or_default().push(nth);
    }
    packages.retain(|_, groups| subject.llcs_of_package(groups[0]).len() > 1);
    units.extend(packages.into_values().map(|groups| (Figure::Package, groups)));
    units
}

/// Whether `block` is about a state that may let the LLC sleep: between the shallowest and the deepest. What a
/// core alone in its group takes there cannot be distinguished from that.
fn sleeps(subject: &Subject, block: &Block) -> Option<(usize, usize)> {
    let (&cpu, &state) = block.limits.first_key_value().filter(|(_, state)| **state > 0)?;
    let group = subject.groups.iter().find(|group| group.cpus().any(|other| other == cpu))?;
    (group.cores.len() > 1).then_some((group.kind, state))
}

/// How a core spent its time (shares).
struct CoreTime {
    work: f64,
    /// Its threads at work but for the first.
    siblings: f64,
    idle: Vec<f64>,
    /// The share that counts as sleep for what is around it.
    deepest: f64,
    wakes_per_s: f64,
}

impl CoreTime {
    fn of(subject: &Subject, kind: usize, core: &[usize], block: &Block, seen: &Seen) -> Self {
        let nr_states = subject.kinds[kind].idle.len();
        let none = vec![0.0; nr_states];
        let (mut all_idle, mut at_work) = (1.0, 0.0);
        let mut idle = vec![0.0; nr_states];
        for cpu in core {
            let shares = seen.idle.get(cpu).unwrap_or(&none);
            let is_busy = block.busy.contains(cpu);
            // Without idle states nothing tells what else ran.
            let idle_share: f64 = match nr_states {
                _ if is_busy => 0.0,
                0 => 1.0,
                _ => shares.iter().sum::<f64>().min(1.0),
            };
            all_idle *= idle_share;
            at_work += 1.0 - idle_share;
            idle.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        }
        // A core is idle in the states of its threads while all of them are.
        let sum: f64 = idle.iter().sum();
        let scale = if sum > 0.0 { all_idle / sum } else { 0.0 };
        idle.iter_mut().for_each(|share| *share *= scale);
        let work = 1.0 - all_idle;
        // Kept from its deepest state it keeps all around it awake.
        let is_limited = core.iter().any(|cpu| block.limits.contains_key(cpu));
        let deepest = if is_limited { 0.0 } else { idle.last().copied().unwrap_or(all_idle) };
        CoreTime {
            work,
            siblings: at_work - work,
            idle,
            deepest,
            // Out of a shallow state a wake-up is no more than its time at work.
            wakes_per_s: if is_limited || core.iter().any(|cpu| block.busy.contains(cpu)) {
                0.0
            } else {
                core.iter().filter_map(|cpu| seen.wakes_per_s.get(cpu)).sum()
            },
        }
    }
}

#[cfg(test)]
mod tests;
