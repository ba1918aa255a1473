//! Mode `auto`: which mode, by power profile, power source and load; and where another one may be chosen that
//! takes less energy.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use scx_utils::autopower::{PowerProfile, fetch_power_profile};
use serde::{Deserialize, Serialize};

use crate::machine::cpufreq::fixes_preference;
use crate::machine::power_supply;
use crate::settings::hints::EPP_FILE;
use crate::settings::policy::Mode;

/// How often the evidence is looked at: rare enough to cost an idle machine nothing
/// (a wake-up of some 100 us), often enough that no user waits for the change.
pub const PERIOD: Duration = Duration::from_secs(5);
/// How many times in a row it has to be busy: ten seconds, longer than a page loads.
const BUSY_LOOKS: u32 = 2;
/// And calm, to go back: half a minute, longer than the pauses in a build.
const CALM_LOOKS: u32 = 6;

/// What the first CPUs are asked for is below this.
const FIRST_POLICY: &str = "/sys/devices/system/cpu/cpufreq/policy0";

/// What the mode is chosen by: the table `[auto]` of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// The desktop's power profile goes before everything else.
    pub power_profile: bool,
    /// On battery the machine saves energy, whatever its load.
    pub battery: bool,
    /// Where something measures power modes take turns now and then, and the one that takes the least is
    /// kept.
    pub measure: bool,
    /// From this load on the machine is busy: packing and spread use nearly the same CPUs
    /// then, and spread has no queueing (1..=100 % of its capacity).
    pub busy_pct: u32,
    /// Up to this it is calm. The gap keeps a load in between from switching it to and fro
    /// (0.. %, less than `busy_pct`).
    pub calm_pct: u32,
    /// `some avg10` of /proc/pressure/cpu from which it is busy too: tasks wait (1..=100 %).
    pub pressure_pct: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            power_profile: true,
            battery: true,
            measure: true,
            busy_pct: 60,
            calm_pct: 30,
            pressure_pct: 20,
        }
    }
}

impl Rules {
    /// Fails with a sentence that begins with the field that is wrong.
    pub fn check(&self) -> Result<()> {
        for (name, pct) in [("busy_pct", self.busy_pct), ("pressure_pct", self.pressure_pct)] {
            ensure!((1..=100).contains(&pct), "{name} {pct} is out of range: 1..100");
        }
        ensure!(
            self.calm_pct < self.busy_pct,
            "calm_pct {} must be less than busy_pct, {}",
            self.calm_pct,
            self.busy_pct
        );
        Ok(())
    }
}

/// What the choice is made from.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    pub profile: PowerProfile,
    /// `None`: not known; a desktop or a server.
    pub on_battery: Option<bool>,
    /// Capacity in use since the last look, of that of all CPUs (%).
    pub load_pct: f64,
    /// Share of time in which some task waited for a CPU, over 10 s (%).
    pub pressure_pct: f64,
    /// Tasks have waited for the next period of their `cpu.max`, which the kernel counts as pressure too.
    pub throttles: bool,
}

impl Evidence {
    /// Looks at this machine, whose load is `load_pct`, which `throttles` cgroups or not, and whose desktop
    /// reports `profile`; `None`: as the CPUs are set. What cannot be read is left out.
    pub fn gather(load_pct: f64, throttles: bool, profile: Option<PowerProfile>) -> Self {
        Evidence {
            profile: profile.unwrap_or_else(profile_of_cpus),
            throttles,
            on_battery: power_supply::on_battery(Path::new("/")),
            load_pct,
            pressure_pct: fs::read_to_string("/proc/pressure/cpu")
                .ok()
                .and_then(|text| parse_pressure(&text))
                .unwrap_or(0.0),
        }
    }

    /// The share of time in which some task waited for what another mode can give it (%).
    pub fn waiting_pct(&self) -> f64 {
        if self.throttles { 0.0 } else { self.pressure_pct }
    }
}

/// By the energy/performance preference of the first CPUs. Without one scx_utils takes the governor's name, but
/// nobody need have asked for that: `performance` is the default of many servers, and `powersave` that of
/// intel_pstate elsewhere.
fn profile_of_cpus() -> PowerProfile {
    if says_profile(Path::new(FIRST_POLICY)) {
        fetch_power_profile(true)
    } else {
        PowerProfile::Unknown
    }
}

/// Whether the preference of `policy` is somebody's choice: where the governor `performance`
/// fixes it, it is the governor's name once more.
fn says_profile(policy: &Path) -> bool {
    policy.join(EPP_FILE).exists() && !fixes_preference(policy)
}

/// What the rules say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruled {
    pub mode: Mode,
    pub why: String,
    /// Energy decides: another mode may take less.
    pub is_open: bool,
}

impl Ruled {
    fn fixed(mode: Mode, why: &str) -> Self {
        Ruled { mode, why: why.to_owned(), is_open: false }
    }

    /// It packs, unless another mode is known to take less.
    fn open(why: &str) -> Self {
        Ruled { mode: Mode::Packing, why: why.to_owned(), is_open: true }
    }
}

/// Remembers how long it has been busy or calm.
#[derive(Clone, Debug, Default)]
pub struct Chooser {
    spreads: bool,
    looks: u32,
    last: Option<Instant>,
}

impl Chooser {
    /// Whether it is time to look again.
    pub fn is_due(&mut self) -> bool {
        // Timers are late, never early; a little less than the period is due.
        let due = self.last.is_none_or(|last| last.elapsed() + PERIOD / 10 >= PERIOD);
        if due {
            self.last = Some(Instant::now());
        }
        due
    }

    /// Which mode, and why, at a look that is due.
    pub fn choose(&mut self, now: &Evidence, rules: &Rules) -> Ruled {
        // Also while something else decides: what it finds when that ends is no news.
        self.follow(now, rules);
        self.rule(now, rules)
    }

    /// The same between two looks: for how long it has been busy or calm is counted in these.
    pub fn rule(&self, now: &Evidence, rules: &Rules) -> Ruled {
        match now.profile {
            _ if !rules.power_profile => {}
            PowerProfile::Performance => {
                return Ruled::fixed(Mode::Spread, "power profile performance");
            }
            PowerProfile::Powersave => {
                return Ruled::fixed(Mode::Packing, "power profile power-saver");
            }
            PowerProfile::Balanced { .. } | PowerProfile::Unknown => {}
        }
        if rules.battery && now.on_battery == Some(true) {
            return Ruled::open("on battery");
        }
        let of_limits = if now.throttles { " with cpu.max" } else { "" };
        let load =
            format!("load {:.0} %, pressure {:.0} %{of_limits}", now.load_pct, now.pressure_pct);
        if self.spreads {
            Ruled::fixed(Mode::Spread, &format!("busy: {load}"))
        } else {
            Ruled::open(&format!("the load fits: {load}"))
        }
    }

    /// Changes sides when the other has been right for long enough.
    fn follow(&mut self, now: &Evidence, rules: &Rules) {
        let pressed = now.waiting_pct() >= f64::from(rules.pressure_pct);
        let busy = now.load_pct >= f64::from(rules.busy_pct) || pressed;
        let calm = now.load_pct <= f64::from(rules.calm_pct) && !pressed;
        let (other, needed) = if self.spreads { (calm, CALM_LOOKS) } else { (busy, BUSY_LOOKS) };
        self.looks = if other { self.looks + 1 } else { 0 };
        if self.looks >= needed {
            (self.spreads, self.looks) = (!self.spreads, 0);
        }
    }
}

/// `some avg10=1.23 avg60=..` of a PSI file.
fn parse_pressure(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Evidence {
        Evidence {
            profile: PowerProfile::Unknown,
            on_battery: None,
            load_pct: 5.0,
            pressure_pct: 0.0,
            throttles: false,
        }
    }

    #[test]
    fn profile_goes_before_battery_and_battery_before_load() {
        let (mut chooser, rules) = (Chooser::default(), Rules::default());
        let busy = Evidence { load_pct: 99.0, ..quiet() };
        let performance =
            Evidence { profile: PowerProfile::Performance, on_battery: Some(true), ..quiet() };
        let ruled = chooser.choose(&performance, &rules);
        assert_eq!((ruled.mode, ruled.is_open), (Mode::Spread, false));
        for _ in 0..10 {
            let saver = Evidence { profile: PowerProfile::Powersave, ..busy };
            let ruled = chooser.choose(&saver, &rules);
            assert_eq!((ruled.mode, ruled.is_open), (Mode::Packing, false));
            let battery = Evidence { on_battery: Some(true), ..busy };
            assert_eq!(chooser.choose(&battery, &rules), Ruled::open("on battery"));
        }
        assert_eq!(chooser.choose(&busy, &rules).mode, Mode::Spread, "it was busy all the time");
        for _ in 0..6 {
            chooser.choose(&Evidence { on_battery: Some(true), ..quiet() }, &rules);
        }
        assert_eq!(chooser.choose(&quiet(), &rules).mode, Mode::Packing, "it has been calm");
    }

    #[test]
    fn load_switches_late_and_back_later_and_not_in_between() {
        let (mut chooser, rules) = (Chooser::default(), Rules::default());
        let mut modes = |evidence: Evidence, looks| -> Vec<Mode> {
            (0..looks).map(|_| chooser.choose(&evidence, &rules).mode).collect()
        };
        let busy = Evidence { load_pct: 80.0, ..quiet() };
        let between = Evidence { load_pct: 45.0, ..quiet() };
        assert_eq!(modes(busy, 1), [Mode::Packing]);
        assert_eq!(modes(quiet(), 1), [Mode::Packing], "one busy look is none");
        assert_eq!(modes(busy, 2), [Mode::Packing, Mode::Spread]);
        assert_eq!(modes(between, 50), [Mode::Spread; 50]);
        assert_eq!(modes(quiet(), 5), [Mode::Spread; 5]);
        assert_eq!(modes(quiet(), 1), [Mode::Packing]);
        assert_eq!(modes(between, 50), [Mode::Packing; 50]);
        let pressed = Evidence { pressure_pct: 25.0, ..quiet() };
        let limited = Evidence { throttles: true, ..pressed };
        assert_eq!(modes(limited, 50), [Mode::Packing; 50], "a task held to cpu.max needs no CPU");
        assert_eq!(modes(pressed, 2), [Mode::Packing, Mode::Spread], "waiting is evidence too");
        for _ in 0..10 {
            assert_eq!(chooser.rule(&quiet(), &rules).mode, Mode::Spread, "no look");
        }
    }

    #[test]
    fn rules_can_be_changed_within_reason() {
        let rules = Rules {
            power_profile: false,
            battery: false,
            busy_pct: 4,
            calm_pct: 2,
            ..Rules::default()
        };
        rules.check().unwrap();
        let mut chooser = Chooser::default();
        let now = Evidence { profile: PowerProfile::Powersave, on_battery: Some(true), ..quiet() };
        chooser.choose(&now, &rules);
        let ruled = chooser.choose(&now, &rules);
        assert_eq!(ruled.mode, Mode::Spread, "a load of 5 % is busy");
        assert!(!ruled.is_open, "what is busy is not slowed down to save energy");
        for (bad, said) in [
            (Rules { busy_pct: 101, ..Rules::default() }, "busy_pct 101 is out of range"),
            (Rules { calm_pct: 60, ..Rules::default() }, "calm_pct 60 must be less"),
            (Rules { pressure_pct: 0, ..Rules::default() }, "pressure_pct 0 is out of range"),
        ] {
            assert!(bad.check().unwrap_err().to_string().starts_with(said));
        }
    }

    #[test]
    fn a_preference_that_the_governor_fixes_is_nobodys_choice() {
        let policy = std::env::temp_dir().join(format!("powerpack-auto-{}", std::process::id()));
        fs::create_dir_all(&policy).unwrap();
        let put = |file: &str, text: &str| fs::write(policy.join(file), text).unwrap();
        assert!(!says_profile(&policy), "there is none");
        put(EPP_FILE, "performance\n");
        for driver in ["intel_pstate", "amd-pstate-epp"] {
            put("scaling_driver", driver);
            put("scaling_governor", "performance\n");
            assert!(!says_profile(&policy), "{driver} has fixed it");
            put("scaling_governor", "powersave\n");
            assert!(says_profile(&policy), "somebody has set it with {driver}");
        }
        fs::remove_dir_all(&policy).unwrap();
    }

    #[test]
    fn pressure_is_read_as_the_kernel_writes_it() {
        let text = "some avg10=1.25 avg60=0.40 avg300=0.10 total=12\nfull avg10=0.00 avg60=0\n";
        assert_eq!(parse_pressure(text), Some(1.25));
        assert_eq!(parse_pressure(""), None);
    }
}
