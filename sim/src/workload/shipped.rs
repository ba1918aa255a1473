//! Those that come with the simulator.

/// By name.
pub const SHIPPED: [(&str, &str); 1] = [("light", include_str!("../../workloads/light.toml"))];
