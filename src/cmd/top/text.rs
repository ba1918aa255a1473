//! Numbers as they are shown; `-` is what is not known.

use super::cpu_states::CpuState;
use crate::scheduler::latency::Latency;

/// What is not known.
pub const UNKNOWN: &str = "-";

/// How many in a second.
pub fn rate(per_s: Option<f64>) -> String {
    match per_s {
        None => UNKNOWN.into(),
        Some(none) if none < 0.05 => "0".into(),
        Some(few) if few < 9.95 => format!("{few:.1}"),
        Some(some) if some < 999.5 => format!("{some:.0}"),
        Some(many) if many < 9995.0 => format!("{:.1}k", many / 1e3),
        Some(many) => format!("{:.0}k", many / 1e3),
    }
}

/// The bound of the bucket of this percentile: "<= 64 us".
pub fn percentile(latency: Option<&Latency>, pct: f64) -> String {
    let Some(latency) = latency.filter(|latency| latency.counts.iter().any(|&count| count > 0))
    else {
        return UNKNOWN.into();
    };
    match latency.percentile_us(pct) {
        Some(us) => format!("<= {}", micros(us)),
        // More than the last bound that there is.
        None => format!("> {}", micros(1 << latency.counts.len().saturating_sub(2))),
    }
}

fn micros(us: u64) -> String {
    if us < 1000 { format!("{us} us") } else { format!("{} ms", us / 1000) }
}

/// The two largest units of it.
pub fn uptime(seconds: f64) -> String {
    let s = seconds as u64;
    let (minutes, hours, days) = (s / 60, s / 3600, s / 86400);
    if days > 0 {
        format!("{days} d {} h", hours % 24)
    } else if hours > 0 {
        format!("{hours} h {} min", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes} min {} s", s % 60)
    } else {
        format!("{s} s")
    }
}

/// Power, with the unit.
pub fn watts(power_w: Option<f64>) -> String {
    match power_w {
        None => format!("{UNKNOWN} W"),
        Some(many) if many >= 99.95 => format!("{many:.0} W"),
        Some(watts) => format!("{watts:.1} W"),
    }
}

/// Frequency, with the unit; the deepest idle state's name and share.
pub fn cpu_state(state: &CpuState) -> (String, String) {
    let frequency = state.frequency_mhz.map_or_else(|| UNKNOWN.into(), |mhz| format!("{mhz:.0}"));
    let idle = match &state.deepest_idle {
        Some((name, pct)) => {
            format!("{} {pct:.0} %", clip(name.split(' ').next().unwrap_or(name), 8))
        }
        None => format!("C-state {UNKNOWN}"),
    };
    (format!("{frequency} MHz"), idle)
}

/// Three of them.
pub fn digits(value: f64) -> String {
    let after = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.after$}")
}

/// At most `width` characters of it; what is cut is said.
pub fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { kept } else { kept + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_there_is_room_for() {
        let rates = [0.0, 0.26, 9.96, 999.4, 999.6, 12_345.0].map(|per_s| rate(Some(per_s)));
        assert_eq!(rates, ["0", "0.3", "10", "999", "1.0k", "12k"]);
        assert_eq!(rate(None), "-");
        assert_eq!([0.5, 9.999, 99.99].map(digits), ["0.50", "10.0", "100"]);
        let times = [59.9, 61.0, 3720.0, 90_000.0].map(uptime);
        assert_eq!(times, ["59 s", "1 min 1 s", "1 h 2 min", "1 d 1 h"]);
        assert_eq!([None, Some(0.0), Some(123.4)].map(watts), ["- W", "0.0 W", "123 W"]);
        assert_eq!([clip("abc", 3), clip("abc", 2), clip("abc", 0)], ["abc", "a…", ""]);
    }

    #[test]
    fn latencies_are_bounds() {
        let mut latency = Latency { sum_ns: 0, counts: vec![0; 18] };
        assert_eq!(percentile(Some(&latency), 50.0), "-");
        (latency.counts[6], latency.counts[17]) = (9, 1);
        assert_eq!(percentile(Some(&latency), 50.0), "<= 64 us");
        assert_eq!(percentile(Some(&latency), 100.0), "> 65 ms");
        assert_eq!(percentile(None, 50.0), "-");
    }
}
