//! The geometric average of the kernel models (kernel/sched/pelt.c): half of it
//! is forgotten in 32 periods of 1024 us. The scheduler itself uses its own, in
//! src/bpf/signal.h.

/// 32 periods of 1024 us (ns).
const HALF_LIFE_NS: f64 = 32.0 * 1024.0 * 1024.0;

/// What an average that is `value` becomes if the thing is `input` for `elapsed_ns`.
pub fn approach(value: f64, input: f64, elapsed_ns: u64) -> f64 {
    input + (value - input) * (-(elapsed_ns as f64) / HALF_LIFE_NS).exp2()
}

/// An average of something between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    value: f64,
    updated_ns: u64,
}

impl Average {
    /// One that is `value` at `now_ns`.
    pub fn of(value: f64, now_ns: u64) -> Self {
        Average { value, updated_ns: now_ns }
    }

    /// What it is at `now_ns` if the thing has been `input` since it was last updated.
    pub fn at(&self, now_ns: u64, input: f64) -> f64 {
        approach(self.value, input, now_ns.saturating_sub(self.updated_ns))
    }

    /// The thing has been `input` since it was last updated.
    pub fn update(&mut self, now_ns: u64, input: f64) -> f64 {
        if now_ns > self.updated_ns {
            self.value = self.at(now_ns, input);
            self.updated_ns = now_ns;
        }
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_forgotten_in_a_half_life() {
        let mut average = Average::default();
        assert!((average.update(HALF_LIFE_NS as u64, 1.0) - 0.5).abs() < 1e-9);
        assert!((average.at(2 * HALF_LIFE_NS as u64, 0.0) - 0.25).abs() < 1e-9);
    }
}
