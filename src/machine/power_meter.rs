//! What measures this machine's power: counters of energy (RAPL, hwmon), else a meter of power (hwmon), else the
//! batteries' rate.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use powerpack_load::clock;

use super::power_supply;
use super::sensors::{entries, mean, name, number};

/// No meter changes what it says more often.
const STEP_MIN: Duration = Duration::from_millis(1);
/// The driver of hwmon that counts the energy of AMD's sockets, and the label of those counters.
const SOCKETS: (&str, &str) = ("amd_energy", "Esocket");
/// The driver of hwmon for ACPI's power meter, which is of the whole machine. (Others are of a part, as a graphics
/// card or a drive.)
const ACPI_METER: &str = "power_meter";

/// The machine was suspended if that time has grown by this much (ns): less is between the readings of two clocks.
const SUSPENDED_MIN_NS: i64 = 100_000_000;

/// A counter of energy (uJ), and where it begins again.
struct Counter {
    path: PathBuf,
    /// 0: it does not.
    range_uj: u64,
    last_uj: u64,
    used_uj: u64,
}

impl Counter {
    fn begin(path: PathBuf, range_uj: u64) -> Option<Self> {
        let last_uj = number(&path)?;
        Some(Counter { path, range_uj, last_uj, used_uj: 0 })
    }

    fn look(&mut self) {
        let now = number(&self.path).unwrap_or(self.last_uj);
        let wrapped = if now < self.last_uj { self.range_uj } else { 0 };
        self.used_uj += (now + wrapped).saturating_sub(self.last_uj);
        self.last_uj = now;
    }
}

/// Where power is read if nothing counts energy.
enum Gauge {
    /// A file in uW.
    Machine(PathBuf),
    Batteries(Vec<PathBuf>),
}

impl Gauge {
    /// What it says now (W).
    fn read_w(&self) -> Option<f64> {
        match self {
            Gauge::Machine(path) => number(path).map(|uw| uw as f64 / 1e6),
            Gauge::Batteries(all) => discharge_w(all),
        }
    }
}

/// Measures from its beginning or its last reset.
pub struct PowerMeter {
    counters: Vec<Counter>,
    gauge: Option<Gauge>,
    sampled_w: Vec<f64>,
    /// As it began: counters of energy may begin again as the machine is resumed, which looks as if they had wrapped.
    suspended_ns: i64,
    /// There are RAPL's counters, which are not for this user to read.
    is_denied: bool,
    title: &'static str,
}

impl PowerMeter {
    /// The best one below `root` (`/` but in tests), beginning now.
    pub fn begin(root: &Path) -> Self {
        let of = |counters, gauge, title| PowerMeter {
            counters,
            gauge,
            sampled_w: vec![],
            suspended_ns: clock::suspended_ns(),
            is_denied: is_denied(root),
            title,
        };
        let packages = rapl(root);
        if !packages.is_empty() {
            return of(packages, None, "RAPL counters of packages");
        }
        let sockets = sockets(root);
        if !sockets.is_empty() {
            return of(sockets, None, "hwmon counters of sockets");
        }
        match acpi_meter(root) {
            Some(path) => of(vec![], Some(Gauge::Machine(path)), "ACPI's power meter"),
            None => {
                let batteries = power_supply::batteries(root);
                let gauge = (!batteries.is_empty()).then_some(Gauge::Batteries(batteries));
                of(vec![], gauge, "the battery")
            }
        }
    }

    /// Which one it is, for the user; of use if it measures.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Whether energy is counted: what passed between two looks is exact. Else power is sampled, and what is read may
    /// be some seconds old.
    pub fn is_exact(&self) -> bool {
        !self.counters.is_empty()
    }

    /// Whether it says anything now: a battery does only while it is discharged.
    pub fn measures(&self) -> bool {
        self.is_exact() || self.gauge.as_ref().and_then(Gauge::read_w).is_some()
    }

    /// Looks: at least when what is measured begins and ends and, where power is sampled, in between.
    pub fn look(&mut self) {
        self.counters.iter_mut().for_each(Counter::look);
        self.sampled_w.extend(self.gauge.as_ref().and_then(Gauge::read_w));
    }

    /// Forgets the sums: begins now.
    pub fn reset(&mut self) {
        self.counters.iter_mut().for_each(|counter| counter.used_uj = 0);
        self.sampled_w.clear();
        self.suspended_ns = clock::suspended_ns();
    }

    /// Whether the machine was suspended since it began.
    pub fn was_suspended(&self) -> bool {
        clock::suspended_ns() >= self.suspended_ns + SUSPENDED_MIN_NS
    }

    /// Mean power over `seconds` (W); `None`: it says nothing, or the machine was suspended meanwhile.
    pub fn power_w(&self, seconds: f64) -> Option<f64> {
        if self.was_suspended() {
            return None;
        }
        if self.is_exact() {
            let used_uj: u64 = self.counters.iter().map(|counter| counter.used_uj).sum();
            return Some(used_uj as f64 / 1e6 / seconds);
        }
        mean(&self.sampled_w)
    }

    /// How long it takes from one change of what it says to the next, at most `max`.
    pub fn step(&mut self, max: Duration) -> Duration {
        let begin = Instant::now();
        let mut changes = vec![];
        let mut last = self.reading();
        while changes.len() < 2 && begin.elapsed() < max {
            thread::sleep(STEP_MIN);
            self.look();
            let now = self.reading();
            if now != last {
                changes.push(Instant::now());
                last = now;
            }
        }
        match changes[..] {
            [first, second] => second - first,
            _ => max,
        }
    }

    /// What it says last.
    fn reading(&self) -> (Vec<u64>, Option<f64>) {
        let counters = self.counters.iter().map(|counter| counter.last_uj).collect();
        (counters, self.sampled_w.last().copied())
    }

    /// Why it says nothing, if it does not: words that go on from "power: ".
    pub fn missing(&self) -> Option<&'static str> {
        match &self.gauge {
            _ if self.measures() => None,
            _ if self.is_denied => Some("RAPL is for root: run it with sudo"),
            Some(Gauge::Batteries(all)) if all.iter().any(|one| power_supply::discharges(one)) => {
                Some(
                    "no RAPL counters in /sys/class/powercap, no meter in /sys/class/hwmon, and on battery, which \
                     is discharging, but reports no rate",
                )
            }
            Some(Gauge::Batteries(_)) => Some(
                "no RAPL counters in /sys/class/powercap, no meter in /sys/class/hwmon, and not on battery",
            ),
            _ => Some(
                "no RAPL counters in /sys/class/powercap, no meter in /sys/class/hwmon, and no battery",
            ),
        }
    }
}

/// The packages, by the registers of their CPUs, else by those in memory: where there are both, they are two ways to
/// the same counters.
fn rapl(root: &Path) -> Vec<Counter> {
    let by_cpu = packages(root, "intel-rapl:");
    if by_cpu.is_empty() { packages(root, "intel-rapl-mmio:") } else { by_cpu }
}

/// Whether there is a counter that this user may not read.
fn is_denied(root: &Path) -> bool {
    let zones = entries(&root.join("sys/class/powercap"));
    let opened = zones.iter().map(|zone| fs::File::open(zone.join("energy_uj")));
    opened.into_iter().any(|file| file.is_err_and(|err| err.kind() == ErrorKind::PermissionDenied))
}

/// `intel-rapl:N` are packages, `intel-rapl:N:M` parts of them; AMD's have the same names.
fn packages(root: &Path, prefix: &str) -> Vec<Counter> {
    let is_package = |path: &PathBuf| {
        let title = fs::read_to_string(path.join("name")).unwrap_or_default();
        let nth = name(path).strip_prefix(prefix);
        nth.is_some_and(|nth| !nth.contains(':')) && title.starts_with("package")
    };
    let counter = |path: PathBuf| {
        let range_uj = number(&path.join("max_energy_range_uj")).unwrap_or(0);
        Counter::begin(path.join("energy_uj"), range_uj)
    };
    let dirs = entries(&root.join("sys/class/powercap"));
    dirs.into_iter().filter(is_package).filter_map(counter).collect()
}

/// The devices of hwmon that have this driver.
fn hwmon(root: &Path, driver: &str) -> Vec<PathBuf> {
    let is_it = |dir: &PathBuf| {
        fs::read_to_string(dir.join("name")).is_ok_and(|name| name.trim() == driver)
    };
    entries(&root.join("sys/class/hwmon")).into_iter().filter(is_it).collect()
}

fn sockets(root: &Path) -> Vec<Counter> {
    let (driver, label) = SOCKETS;
    let counter = |path: PathBuf| {
        let of_counter = name(&path).strip_suffix("_label")?.to_owned();
        let is_socket = fs::read_to_string(&path).is_ok_and(|text| text.starts_with(label));
        let input = path.with_file_name(format!("{of_counter}_input"));
        is_socket.then(|| Counter::begin(input, 0)).flatten()
    };
    hwmon(root, driver).iter().flat_map(|dir| entries(dir)).filter_map(counter).collect()
}

fn acpi_meter(root: &Path) -> Option<PathBuf> {
    let files = |dir: PathBuf| ["power1_average", "power1_input"].map(|file| dir.join(file));
    let mut all = hwmon(root, ACPI_METER).into_iter().flat_map(files);
    all.find(|path| number(path).is_some_and(|uw| uw > 0))
}

/// What these supply, all together (W); nothing if none of them is discharged, or one that is does not say how fast.
fn discharge_w(batteries: &[PathBuf]) -> Option<f64> {
    let discharged = batteries.iter().filter(|battery| power_supply::discharges(battery));
    let rates_w: Vec<f64> = discharged.map(|battery| rate_w(battery)).collect::<Option<_>>()?;
    (!rates_w.is_empty()).then(|| rates_w.iter().sum())
}

/// How fast the charge of one changes (W).
fn rate_w(battery: &Path) -> Option<f64> {
    // By the kernel's rules what is discharged has a negative rate, but most drivers report the amount alone.
    let of = |file| {
        let text = fs::read_to_string(battery.join(file)).ok()?;
        text.trim().parse::<i64>().ok().map(|micro| micro.unsigned_abs() as f64 / 1e6)
    };
    of("power_now").or_else(|| Some(of("current_now")? * of("voltage_now")?))
}

#[cfg(test)]
mod tests;
