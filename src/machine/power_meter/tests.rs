use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::machine::kernel;
use crate::machine::sensors::tests::{sysfs, write};

#[test]
fn counters_that_begin_again_are_followed() {
    let counter = "class/powercap/intel-rapl:0/energy_uj";
    let root = sysfs(
        "rapl",
        &[
            ("class/powercap/intel-rapl:0/name", "package-0"),
            (counter, "9000000"),
            ("class/powercap/intel-rapl:0/max_energy_range_uj", "10000000"),
            // A part of it, and the whole laptop: not counted twice.
            ("class/powercap/intel-rapl:0:0/name", "core"),
            ("class/powercap/intel-rapl:0:0/energy_uj", "1"),
            ("class/powercap/intel-rapl:1/name", "psys"),
            ("class/powercap/intel-rapl:1/energy_uj", "1"),
        ],
    );
    let mut meter = PowerMeter::begin(&root);
    write(&root, &[(counter, "1000000")]);
    meter.look();
    write(&root, &[(counter, "3000000")]);
    meter.look();
    assert_eq!(meter.power_w(2.0), Some(2.0));
    meter.reset();
    assert_eq!(meter.power_w(2.0), Some(0.0));
    assert!(meter.is_exact() && meter.missing().is_none());
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn counters_that_are_for_root_are_not_called_missing() {
    let counter = "class/powercap/intel-rapl:0/energy_uj";
    let root =
        sysfs("denied", &[("class/powercap/intel-rapl:0/name", "package-0"), (counter, "9")]);
    assert!(!PowerMeter::begin(&root).is_denied);
    fs::set_permissions(root.join("sys").join(counter), Permissions::from_mode(0o000)).unwrap();
    let mut meter = PowerMeter::begin(&root);
    // Root reads it nevertheless.
    assert_ne!(meter.is_denied, kernel::is_root());
    (meter.counters, meter.is_denied) = (vec![], true);
    assert_eq!(meter.missing(), Some("RAPL is for root: run it with sudo"));
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_package_that_is_read_in_two_ways_counts_once() {
    let [by_cpu, in_memory] = ["class/powercap/intel-rapl:0", "class/powercap/intel-rapl-mmio:0"];
    let root = sysfs("rapl-mmio", &[]);
    let power_w = || {
        let mut meter = PowerMeter::begin(&root);
        meter.counters.iter_mut().for_each(|counter| counter.last_uj = 0);
        meter.look();
        meter.power_w(1.0)
    };
    let package = |dir: &str, uj: &str| {
        write(&root, &[(&format!("{dir}/name"), "package-0"), (&format!("{dir}/energy_uj"), uj)]);
    };
    package(in_memory, "4000000");
    assert_eq!(power_w(), Some(4.0), "the only one there is");
    package(by_cpu, "5000000");
    assert_eq!(power_w(), Some(5.0));
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn hwmon_counts_for_sockets_and_for_the_machine_and_not_for_its_parts() {
    let card =
        [("class/hwmon/hwmon0/name", "amdgpu"), ("class/hwmon/hwmon0/power1_average", "9000000")];
    let machine = [
        ("class/hwmon/hwmon1/name", "power_meter"),
        ("class/hwmon/hwmon1/power1_average", "31000000"),
    ];
    let sockets = [
        ("class/hwmon/hwmon2/name", "amd_energy"),
        ("class/hwmon/hwmon2/energy1_label", "Ecore000"),
        ("class/hwmon/hwmon2/energy1_input", "5"),
        ("class/hwmon/hwmon2/energy9_label", "Esocket0"),
        ("class/hwmon/hwmon2/energy9_input", "1000000"),
    ];
    let root = sysfs("hwmon", &card);
    assert!(!PowerMeter::begin(&root).measures());
    write(&root, &machine);
    let mut meter = PowerMeter::begin(&root);
    meter.look();
    assert_eq!((meter.power_w(1.0), meter.is_exact()), (Some(31.0), false));
    write(&root, &sockets);
    let mut meter = PowerMeter::begin(&root);
    write(&root, &[(sockets[4].0, "7000000")]);
    meter.look();
    assert_eq!((meter.power_w(2.0), meter.is_exact()), (Some(3.0), true));
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn nothing_is_known_of_a_time_in_which_the_machine_was_suspended() {
    let counter = "class/powercap/intel-rapl:0/energy_uj";
    let root = sysfs(
        "suspended",
        &[
            ("class/powercap/intel-rapl:0/name", "package-0"),
            (counter, "9000000"),
            ("class/powercap/intel-rapl:0/max_energy_range_uj", "262143000000"),
        ],
    );
    let mut meter = PowerMeter::begin(&root);
    assert!(!meter.was_suspended(), "of what was before nothing is known");
    meter.suspended_ns -= 1_000_000_000;
    write(&root, &[(counter, "1000000")]);
    meter.look();
    assert_eq!(meter.power_w(1.0), None, "it has not taken 262 kJ");
    meter.reset();
    write(&root, &[(counter, "3000000")]);
    meter.look();
    assert_eq!(meter.power_w(1.0), Some(2.0));
    fs::remove_dir_all(root).unwrap();
}

/// A battery with this status.
fn battery(root: &Path, name: &str, status: &str, rates: &[(&str, &str)]) {
    let file = |file| format!("class/power_supply/{name}/{file}");
    write(root, &[(&file("type"), "Battery"), (&file("status"), status)]);
    for (name, micro) in rates {
        write(root, &[(&file(name), micro)]);
    }
}

/// What they supply (W), and why that is not known.
fn looked(root: &Path) -> (Option<f64>, Option<&'static str>) {
    let mut meter = PowerMeter::begin(root);
    meter.look();
    (meter.power_w(1.0), meter.missing())
}

#[test]
fn a_battery_reports_only_while_it_is_discharged() {
    let rates = [("current_now", "1500000"), ("voltage_now", "12000000")];
    let root = sysfs("battery", &[]);
    battery(&root, "BAT0", "Discharging", &rates);
    assert_eq!(looked(&root), (Some(18.0), None));
    battery(&root, "BAT0", "Discharging", &[("current_now", "-1000000")]);
    assert_eq!(looked(&root).0, Some(12.0), "a sign is the direction");
    battery(&root, "BAT0", "Charging", &rates);
    let (power_w, missing) = looked(&root);
    assert_eq!(power_w, None);
    assert!(missing.unwrap().contains("not on battery"), "{missing:?}");
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn all_batteries_that_are_discharged_count() {
    let root = sysfs("batteries", &[]);
    battery(&root, "BAT0", "Full", &[("power_now", "0")]);
    battery(&root, "BAT1", "Discharging", &[("power_now", "9000000")]);
    assert_eq!(looked(&root).0, Some(9.0), "not the first one");
    battery(&root, "BAT0", "Discharging", &[("power_now", "-4000000")]);
    assert_eq!(looked(&root).0, Some(13.0));
    battery(&root, "BAT2", "Discharging", &[]);
    let (power_w, missing) = looked(&root);
    assert_eq!(power_w, None, "the sum is not known");
    assert!(missing.unwrap().ends_with("discharging, but reports no rate"), "{missing:?}");
    fs::remove_dir_all(root).unwrap();
}
