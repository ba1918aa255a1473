//! Those that come with the simulator.

/// By name.
pub const SHIPPED: [(&str, &str); 2] = [
    ("vm4", include_str!("../../machines/vm4.toml")),
    ("vm8", include_str!("../../machines/vm8.toml")),
];
