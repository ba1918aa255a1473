//! Lists of CPUs as the kernel writes them.

use anyhow::{Result, ensure};

/// Parses the kernel's list format: `0-3,8,10-11`.
pub fn parse_cpu_list(text: &str) -> Result<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>()?..=last.parse::<usize>()?);
    }
    ensure!(!cpus.is_empty(), "no CPU in '{text}'");
    Ok(cpus)
}
