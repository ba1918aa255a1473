//! What the units of systemd promise that no other test sees.

use std::fs;

/// The value of a setting of a unit.
fn setting(unit: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("packaging/{unit}")).unwrap();
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.next().unwrap_or_else(|| panic!("{unit} has no {name}")).to_owned()
}

/// How slow a turn of a crash loop is that has to end: a load that triggers an error of the kernel's.
const SLOW_TURN_S: u32 = 25;
/// How often somebody may switch it on and off to compare (s).
const COMPARES_EVERY_S: u32 = 30;

#[test]
fn a_crash_loop_ends_and_a_comparison_goes_on() {
    let value = |name| setting("scx_powerpack.service.in", name).parse::<u32>().unwrap();
    let (burst, limit_s) = (value("StartLimitBurst"), value("StartLimitIntervalSec"));
    let turn_s = SLOW_TURN_S + value("RestartSec");
    assert!(burst * turn_s <= limit_s, "a loop of {turn_s} s a turn goes on for ever");
    assert!(burst * COMPARES_EVERY_S >= limit_s, "who compares is refused after {burst} starts");
}

#[test]
fn the_port_of_metrics_is_opened_before_its_address_is_there() {
    assert_eq!(setting("scx_powerpack-metrics.socket", "FreeBind"), "yes");
}
