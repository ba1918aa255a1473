//! Which CPUs have which cache lines: caches without end, kept coherent as by MESI.

use std::collections::HashMap;

use crate::ext::MAX_CPUS;

/// Of every CPU that the scheduler runs on (x86-64, arm64).
const LINE_BYTES: usize = 64;
const WORD_BITS: usize = 64;

/// One line.
#[derive(Clone, Default)]
struct Line {
    /// The CPUs with a valid copy.
    has: [u64; MAX_CPUS / WORD_BITS],
    /// Whether any CPU has ever written it.
    written: bool,
}

/// All lines that were ever used.
#[derive(Default)]
pub struct Lines {
    lines: HashMap<usize, Line>,
}

impl Lines {
    /// `cpu` reads or writes at an address. True if its cache does not have what it needs for that and another
    /// CPU's has had it: the line was changed there, or is changed here while others have copies.
    pub fn access(&mut self, cpu: usize, address: usize, writes: bool) -> bool {
        let line = self.lines.entry(address / LINE_BYTES).or_default();
        let (word, bit) = (cpu / WORD_BITS, 1 << (cpu % WORD_BITS));
        let has = line.has[word] & bit != 0;
        if !writes {
            line.has[word] |= bit;
            return !has && line.written;
        }
        let others = line.has.iter().enumerate().any(|(at, &has)| {
            let others = if at == word { has & !bit } else { has };
            others != 0
        });
        line.written = true;
        if !others && has {
            return false;
        }
        line.has = [0; MAX_CPUS / WORD_BITS];
        line.has[word] = bit;
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_others_have_or_have_changed_is_fetched_once() {
        let mut lines = Lines::default();
        assert!(!lines.access(0, 64, true), "nobody has it");
        assert!(!lines.access(0, 127, false), "it is here");
        assert!(lines.access(900, 100, false), "CPU 0 has changed it");
        assert!(!lines.access(900, 64, false), "now it is here too");
        assert!(lines.access(0, 64, true), "CPU 900 has a copy");
        assert!(!lines.access(0, 64, true), "and has none any more");
        assert!(lines.access(900, 64, false), "so that it needs it again");
        assert!(!lines.access(900, 128, false), "the next line is another one");
        assert!(!lines.access(1, 128, false), "and nobody has ever changed that");
    }
}
