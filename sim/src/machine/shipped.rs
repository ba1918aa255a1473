//! Those that come with the simulator.

/// By name.
pub const SHIPPED: &[(&str, &str)] = &[
    ("apu-2ccx", include_str!("../../machines/apu-2ccx.toml")),
    ("chromebook2", include_str!("../../machines/chromebook2.toml")),
    ("dual-quad", include_str!("../../machines/dual-quad.toml")),
    ("epyc-2s", include_str!("../../machines/epyc-2s.toml")),
    ("handheld", include_str!("../../machines/handheld.toml")),
    ("hybrid-laptop", include_str!("../../machines/hybrid-laptop.toml")),
    ("laptop-lpe", include_str!("../../machines/laptop-lpe.toml")),
    ("many", include_str!("../../machines/many.toml")),
    ("phone", include_str!("../../machines/phone.toml")),
    ("power7", include_str!("../../machines/power7.toml")),
    ("server-2x64", include_str!("../../machines/server-2x64.toml")),
    ("snb-4s", include_str!("../../machines/snb-4s.toml")),
    ("tc2-a7", include_str!("../../machines/tc2-a7.toml")),
    ("vm4", include_str!("../../machines/vm4.toml")),
    ("vm8", include_str!("../../machines/vm8.toml")),
];
