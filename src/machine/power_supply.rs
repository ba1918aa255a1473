//! What the machine is fed from.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel lists batteries and mains, below the root.
const SUPPLIES: &str = "sys/class/power_supply";

/// Whether the machine below `root` runs on battery: no mains is online and a battery of the machine's own discharges.
/// `None`: nothing says so.
pub fn on_battery(root: &Path) -> Option<bool> {
    let mut discharging = None;
    for supply in supplies(root) {
        match read(&supply, "type").as_str() {
            "Battery" if is_own(&supply) => {
                let discharges = read(&supply, "status") == "Discharging";
                discharging = Some(discharging == Some(true) || discharges);
            }
            "Mains" | "USB" if read(&supply, "online") == "1" => return Some(false),
            _ => {}
        }
    }
    discharging
}

/// Whether the machine below `root` has a battery of its own.
pub fn has_battery(root: &Path) -> bool {
    supplies(root).any(|supply| read(&supply, "type") == "Battery" && is_own(&supply))
}

fn supplies(root: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(root.join(SUPPLIES)).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn read(supply: &Path, file: &str) -> String {
    let text = fs::read_to_string(supply.join(file)).unwrap_or_default();
    text.trim().to_owned()
}

/// A mouse has a battery too.
fn is_own(supply: &Path) -> bool {
    read(supply, "scope") != "Device"
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
        let looked = || (on_battery(&root), has_battery(&root));
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
