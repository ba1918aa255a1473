//! Those that come with the simulator.

/// By name.
pub const SHIPPED: [(&str, &str); 18] = [
    ("audio", include_str!("../../workloads/audio.toml")),
    ("crowd", include_str!("../../workloads/crowd.toml")),
    ("cyclictest", include_str!("../../workloads/cyclictest.toml")),
    ("desktop", include_str!("../../workloads/desktop.toml")),
    ("ebizzy-2", include_str!("../../workloads/ebizzy-2.toml")),
    ("ebizzy-4", include_str!("../../workloads/ebizzy-4.toml")),
    ("ebizzy-8", include_str!("../../workloads/ebizzy-8.toml")),
    ("ebizzy-16", include_str!("../../workloads/ebizzy-16.toml")),
    ("light", include_str!("../../workloads/light.toml")),
    ("mixed", include_str!("../../workloads/mixed.toml")),
    ("native8", include_str!("../../workloads/native8.toml")),
    ("stairs-5", include_str!("../../workloads/stairs-5.toml")),
    ("stairs-10", include_str!("../../workloads/stairs-10.toml")),
    ("stairs-20", include_str!("../../workloads/stairs-20.toml")),
    ("stairs-40", include_str!("../../workloads/stairs-40.toml")),
    ("stairs-80", include_str!("../../workloads/stairs-80.toml")),
    ("tiny", include_str!("../../workloads/tiny.toml")),
    ("web-audio", include_str!("../../workloads/web-audio.toml")),
];
