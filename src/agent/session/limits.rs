//! The limits of cgroups as the status reports them.

use std::collections::HashMap;

use crate::bpf_intf::pp_limit;
use crate::control::status::LimitStatus;
use crate::machine::cgroups::{self, Walks};

/// Those of `limits` whose cgroup is still there and has one, by path: where the kernel does not
/// report changes, one without tasks keeps what it had. Without a limit no cgroup is looked at.
pub fn of(limits: &[pp_limit], walks: &mut Walks) -> Vec<LimitStatus> {
    if limits.is_empty() {
        return vec![];
    }
    let paths: HashMap<u64, &str> =
        walks.all().iter().map(|cgroup| (cgroup.id, cgroup.path.as_str())).collect();
    let mut found: Vec<_> = limits
        .iter()
        .filter_map(|limit| Some(status_of(limit, (*paths.get(&limit.cgroup_id)?).to_owned())))
        .filter(|limit| cgroups::has_cpu_max(&limit.cgroup))
        .collect();
    found.sort_unstable_by(|a, b| a.cgroup.cmp(&b.cgroup));
    found
}

/// The cgroups with a `cpu.max` for which there was no place among `limits`.
pub fn without_place(limits: &[LimitStatus], walks: &mut Walks) -> Vec<String> {
    let paths = walks.with_cpu_max().iter();
    paths.filter(|path| limits.iter().all(|limit| limit.cgroup != **path)).cloned().collect()
}

fn status_of(limit: &pp_limit, cgroup: String) -> LimitStatus {
    LimitStatus {
        cgroup,
        quota_us: limit.quota_ns / 1000,
        period_us: limit.period_ns / 1000,
        nr_periods: limit.nr_periods,
        nr_throttled: limit.nr_throttled,
        throttled_us: limit.throttled_ns / 1000,
        waiting: limit.nr_held.max(0).cast_unsigned(),
    }
}
