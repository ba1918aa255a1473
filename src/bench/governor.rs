//! The frequency governor of all CPUs, for a while: the two ends between which OH is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::machine::borrowed::{BENCHMARK, Borrowed, GOVERNOR_FILE};
use crate::machine::cpufreq::hardware_chooses;

/// Policies with both ends. Where the hardware chooses the frequency (intel_pstate,
/// amd_pstate in their active modes) `powersave` does not mean the lowest, and OH nothing.
fn policies(root: &Path) -> Vec<PathBuf> {
    let dir = root.join("sys/devices/system/cpu/cpufreq");
    let policies = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let read = |path: &Path, file| fs::read_to_string(path.join(file)).unwrap_or_default();
    policies
        .filter(|path| {
            let governors = read(path, "scaling_available_governors");
            let has = |name| governors.split_whitespace().any(|other| other == name);
            has("performance") && has("powersave") && !hardware_chooses(path)
        })
        .collect()
}

/// Whether OH can be measured below `root`.
pub fn have_both_ends(root: &Path) -> bool {
    !policies(root).is_empty()
}

/// Sets governor `name` for all below `root`; dropping what is returned puts back what they had. Fails if one cannot be
/// set; those that were are put back.
pub fn set(root: &Path, name: &str) -> Result<Borrowed> {
    let files =
        policies(root).into_iter().map(|policy| (policy.join(GOVERNOR_FILE), name.to_owned()));
    let mut governors = Borrowed::begin(BENCHMARK, root)?;
    governors.set(&files.collect::<Vec<_>>()).context("cannot set the governor")?;
    Ok(governors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn governors_are_put_back() {
        let root = std::env::temp_dir().join(format!("governors-{}", std::process::id()));
        let policy = root.join("sys/devices/system/cpu/cpufreq/policy0");
        fs::create_dir_all(&policy).unwrap();
        fs::create_dir(root.join("run")).unwrap();
        let read = || fs::read_to_string(policy.join("scaling_governor")).unwrap();
        fs::write(policy.join("scaling_governor"), "schedutil\n").unwrap();
        fs::write(policy.join("scaling_driver"), "acpi-cpufreq\n").unwrap();
        assert!(!have_both_ends(&root));
        let available = policy.join("scaling_available_governors");
        fs::write(available, "performance powersave schedutil\n").unwrap();
        assert!(have_both_ends(&root));
        let changed = set(&root, "powersave").unwrap();
        assert_eq!(read(), "powersave");
        drop(changed);
        assert_eq!(read(), "schedutil");
        fs::write(policy.join("scaling_driver"), "intel_pstate\n").unwrap();
        assert!(!have_both_ends(&root));
        fs::remove_dir_all(root).unwrap();
    }
}
