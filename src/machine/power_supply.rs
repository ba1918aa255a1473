//! What the machine is fed from.

use std::fs;
use std::path::{Path, PathBuf};

use super::sensors::entries;

/// Where the kernel lists batteries and mains, below the root.
const SUPPLIES: &str = "sys/class/power_supply";
/// What it calls those that are no batteries.
const MAINS: [&str; 2] = ["Mains", "USB"];

/// Whether the machine below `root` runs on battery: no mains is online and a battery of the machine's own discharges.
/// `None`: nothing says so.
pub fn on_battery(root: &Path) -> Option<bool> {
    let mut discharging = None;
    for supply in entries(&root.join(SUPPLIES)) {
        if is_battery(&supply) {
            discharging = Some(discharging == Some(true) || discharges(&supply));
        } else if MAINS.contains(&read(&supply, "type").as_str()) && read(&supply, "online") == "1"
        {
            return Some(false);
        }
    }
    discharging
}

/// The batteries of its own that the machine below `root` has.
pub fn batteries(root: &Path) -> Vec<PathBuf> {
    entries(&root.join(SUPPLIES)).into_iter().filter(|supply| is_battery(supply)).collect()
}

/// Whether that battery supplies the machine.
pub fn discharges(battery: &Path) -> bool {
    read(battery, "status") == "Discharging"
}

/// A mouse has a battery too, of scope `Device`.
fn is_battery(supply: &Path) -> bool {
    read(supply, "type") == "Battery" && read(supply, "scope") != "Device"
}

fn read(supply: &Path, file: &str) -> String {
    let text = fs::read_to_string(supply.join(file)).unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a supply with these files.
    fn supply(root: &Path, name: &str, files: &[(&str, &str)]) {
        let dir = root.join(SUPPLIES).join(name);
        fs::create_dir_all(&dir).unwrap();
        for (file, text) in files {
            fs::write(dir.join(file), text).unwrap();
        }
    }

    #[test]
    fn a_battery_counts_when_it_is_the_machines_and_no_mains_is_there() {
        let root = std::env::temp_dir().join(format!("powerpack-supply-{}", std::process::id()));
        let looked = || (on_battery(&root), !batteries(&root).is_empty());
        assert_eq!(looked(), (None, false));
        supply(
            &root,
            "mouse",
            &[("type", "Battery\n"), ("scope", "Device\n"), ("status", "Discharging\n")],
        );
        assert_eq!(looked(), (None, false));
        supply(&root, "BAT0", &[("type", "Battery\n"), ("status", "Discharging\n")]);
        assert_eq!(looked(), (Some(true), true));
        supply(&root, "AC", &[("type", "Mains\n"), ("online", "1\n")]);
        assert_eq!(looked(), (Some(false), true));
        fs::remove_dir_all(&root).unwrap();
    }
}
