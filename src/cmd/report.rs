//! What the subcommands print.

use anyhow::{Result, bail};

use crate::bpf_intf as intf;
use crate::control::protocol::{Reply, Request, ask};
use crate::control::status::{CpuStatus, LimitStatus, Status};
use crate::machine::cgroups;
use crate::machine::topology::Ranks;
use crate::scheduler::counters::{Counters, EVENTS};
use crate::settings::policy::{Choice, Pack, PolicyArgs};

/// Width of a utilization bar, in characters.
const BAR_WIDTH: usize = 30;
/// Each takes some 16 characters.
const EVENTS_PER_LINE: usize = 6;

/// `scx_powerpack mode [MODE] [KNOBS]`.
pub fn mode(mode: Option<&str>, policy: &PolicyArgs) -> Result<()> {
    // A misspelt mode needs no running scheduler to be reported.
    let mode = mode.map(str::parse::<Choice>).transpose()?;
    if mode.is_none() && *policy == PolicyArgs::default() {
        let status = ask_status()?;
        println!("{}{}", status.mode, because(status.reason.as_deref()));
        return Ok(());
    }
    switched(&Request::SetPolicy { mode, policy: policy.clone() })
}

/// A cgroup's `cpu.max`, and what came of it.
fn limit_line(limit: &LimitStatus) -> String {
    format!(
        "cpu.max of {}: {} of {} ms; throttled in {} of {} periods, for {:.1} s{}",
        limit.cgroup,
        limit.quota_us as f64 / 1e3,
        limit.period_us as f64 / 1e3,
        limit.nr_throttled,
        limit.nr_periods,
        limit.throttled_us as f64 / 1e6,
        match limit.waiting {
            0 => String::new(),
            nr => format!("; {nr} tasks wait for the next period"),
        }
    )
}

/// `scx_powerpack reload`.
pub fn reload() -> Result<()> {
    switched(&Request::Reload)
}

fn switched(request: &Request) -> Result<()> {
    match ask(request)? {
        Reply::Mode { mode, reason, took_us } => {
            println!("{mode}{} (switched in {took_us:.0} us)", because(reason.as_deref()));
        }
        other => bail!("unexpected reply {other:?}"),
    }
    Ok(())
}

fn because(reason: Option<&str>) -> String {
    reason.map_or(String::new(), |reason| format!(" (auto: {reason})"))
}

/// `scx_powerpack status [--json]`.
pub fn status(json: bool) -> Result<()> {
    let status = ask_status()?;
    if json {
        println!("{}", serde_json::to_string(&status)?);
    } else {
        print_status(&status);
    }
    Ok(())
}

fn ask_status() -> Result<Status> {
    match ask(&Request::Status)? {
        Reply::Status(status) => Ok(*status),
        other => bail!("unexpected reply {other:?}"),
    }
}

fn print_status(status: &Status) {
    let counters = &status.counters;
    println!(
        "scx_powerpack {}: mode {}{}, {} of {} CPUs active, up {:.0} s",
        status.version,
        status.mode,
        because(status.reason.as_deref()),
        counters.active_cpus,
        status.cpus.len(),
        status.uptime_s
    );
    println!(
        "at most {} cores, {}filled to {} %, latency budget {} ms{}",
        status.max_cores,
        if status.pack == Pack::Small { "small tasks packed, " } else { "" },
        status.fill_pct,
        status.latency_budget_ms,
        match status.workloads {
            0 => String::new(),
            nr => format!(", {nr} cgroups treated by the table"),
        }
    );
    if let Some(sentence) = cgroups::ignored_cpu_max(&status.ignored_cpu_max) {
        println!("{sentence}");
    }
    if !status.above_ceiling.is_empty() {
        let cgroups = status.above_ceiling.join(", ");
        println!("above the ceiling, as their cpuset has no CPU below: {cgroups}");
    }
    for sentence in &status.energy_compared {
        println!("energy compared: {sentence}");
    }
    for limit in &status.limits {
        println!("{}", limit_line(limit));
    }
    println!("\nrank  cpu  state     util  non-idle over the last {:.1} s", status.interval_s);
    for cpu in &status.cpus {
        println!(
            "{:>4} {:>4}  {:<8} {:>5}  {:>5.1} % {}",
            cpu.rank,
            cpu.cpu,
            state(cpu),
            cpu.util,
            cpu.non_idle_pct,
            bar(cpu.non_idle_pct)
        );
    }
    println!("\n{}", events(counters));
}

/// The counts by name, as many a line as fit a terminal; `--help-stats` explains them.
fn events(counters: &Counters) -> String {
    let counts = EVENTS.iter().zip(counters.events());
    let counts: Vec<String> = counts.map(|(event, nr)| format!("{} {nr}", event.name)).collect();
    counts.chunks(EVENTS_PER_LINE).map(|line| line.join(", ")).collect::<Vec<_>>().join(",\n")
}

fn state(cpu: &CpuStatus) -> &'static str {
    match cpu {
        CpuStatus { online: false, .. } => "offline",
        CpuStatus { isolated: true, .. } => "isolated",
        CpuStatus { active: true, .. } => "active",
        _ => "surplus",
    }
}

fn bar(pct: f64) -> String {
    let full = (pct / 100.0 * BAR_WIDTH as f64).round() as usize;
    "█".repeat(full.min(BAR_WIDTH))
}

/// `scx_powerpack topology`.
pub fn topology() -> Result<()> {
    let ranks = Ranks::read()?;
    println!(
        "{} CPUs, {} cores online, {} LLCs; filled in this order:\n",
        ranks.cpus().len(),
        ranks.nr_cores(),
        ranks.llcs().len()
    );
    println!(
        "rank  cpu  core  LLC  package  node  capacity of {}",
        intf::pp_limits_PP_CAPACITY_MAX
    );
    for (rank, cpu) in ranks.cpus().iter().enumerate() {
        println!(
            "{rank:>4} {:>4} {:>5} {:>4} {:>8} {:>5}  {:>8}{}",
            cpu.cpu,
            cpu.core,
            cpu.llc,
            cpu.package,
            cpu.node,
            cpu.capacity,
            match (cpu.online, cpu.isolated) {
                (false, _) => "  offline",
                (true, true) => "  isolated",
                (true, false) => "",
            }
        );
    }
    Ok(())
}
