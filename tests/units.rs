//! What the units of systemd promise that no other test sees.

use std::fs;

/// The value of a setting of a unit.
fn setting(unit: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("packaging/{unit}")).unwrap();
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.next().unwrap_or_else(|| panic!("{unit} has no {name}")).to_owned()
}

#[test]
fn a_crash_loop_ends_however_slow_its_turns_are() {
    let value = |name| setting("scx_powerpack.service.in", name).parse::<u32>().unwrap();
    // The slowest: a start that runs into its time limit, or that hangs as it has begun, and
    // does not end by itself.
    let end_s = value("TimeoutStopSec") + value("RestartSec");
    let start_s = value("TimeoutStartSec").max(value("WatchdogSec"));
    let loop_s = value("StartLimitBurst") * (start_s + end_s);
    let limit_s = value("StartLimitIntervalSec");
    assert!(
        loop_s <= limit_s,
        "a loop of {loop_s} s goes on for ever: the limit is for {limit_s} s"
    );
    // Not what fails now and then.
    assert!(limit_s / value("StartLimitBurst") < 3600);
}

#[test]
fn the_port_of_metrics_is_opened_before_its_address_is_there() {
    assert_eq!(setting("scx_powerpack-metrics.socket", "FreeBind"), "yes");
}
