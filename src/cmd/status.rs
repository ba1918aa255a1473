//! `scx_powerpack mode`, `reload`, `status` and `topology`: what they print.

use std::fmt::Write;

use anyhow::{Result, bail};

use super::config;
use crate::bpf_intf as intf;
use crate::control::protocol::{Reply, Request, ask};
use crate::control::status::{CpuStatus, LimitStatus, Status};
use crate::machine::cgroups;
use crate::machine::names::printable;
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
        printable(&limit.cgroup),
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
        Reply::Mode { mode, reason, took_us, lacks } => {
            println!("{mode}{} (switched in {took_us:.0} us)", because(reason.as_deref()));
            lacks.iter().for_each(|lack| println!("{}", config::lack(lack)));
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
        println!("{}", status_text(&status));
    }
    Ok(())
}

/// The status of the running scheduler. Fails when none runs.
pub fn ask_status() -> Result<Status> {
    match ask(&Request::Status)? {
        Reply::Status(status) => Ok(*status),
        other => bail!("unexpected reply {other:?}"),
    }
}

/// What `status` shows, without the last line's end.
pub fn status_text(status: &Status) -> String {
    let mut text = format!("{}\n{}\n", headline(status), knobs_line(status));
    for line in cgroup_lines(status) {
        text.push_str(&line);
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "\nrank  cpu  state     util  non-idle over the last {:.1} s",
        status.interval_s
    );
    for cpu in &status.cpus {
        let _ = writeln!(
            text,
            "{:>4} {:>4}  {:<8} {:>5}  {:>5.1} % {}",
            cpu.rank,
            cpu.cpu,
            state(cpu),
            cpu.util,
            cpu.non_idle_pct,
            bar(cpu.non_idle_pct)
        );
    }
    let _ = write!(text, "\n{}", events(&status.counters));
    text
}

fn headline(status: &Status) -> String {
    format!(
        "scx_powerpack {}: mode {}{}, {} of {} CPUs active, up {:.0} s",
        status.version,
        status.mode,
        because(status.reason.as_deref()),
        status.counters.active_cpus,
        status.nr_usable(),
        status.uptime_s
    )
}

fn knobs_line(status: &Status) -> String {
    format!(
        "at most {} cores, {}filled to {} %, latency budget {} ms{}",
        status.max_cores,
        if status.pack == Pack::Small { "small tasks packed, " } else { "" },
        status.fill_pct,
        status.latency_budget_ms,
        match status.workloads {
            0 => String::new(),
            nr => format!(", {nr} cgroups treated by the table"),
        }
    )
}

/// What is said of cgroups and of kinds of load, a line each.
fn cgroup_lines(status: &Status) -> Vec<String> {
    let mut lines: Vec<String> =
        cgroups::ignored_cpu_max(&status.ignored_cpu_max).into_iter().collect();
    if !status.above_ceiling.is_empty() {
        let cgroups = printable(&status.above_ceiling.join(", "));
        lines.push(format!("above the ceiling, as their cpuset has no CPU below: {cgroups}"));
    }
    let compared = status.energy_compared.iter();
    lines.extend(compared.map(|sentence| format!("energy compared: {sentence}")));
    lines.extend(status.limits.iter().map(limit_line));
    lines
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
    print!("{}", topology_text(&Ranks::read()?));
    Ok(())
}

/// What `topology` shows.
pub fn topology_text(ranks: &Ranks) -> String {
    let mut text = format!(
        "{} CPUs, {} cores online, {} LLCs; filled in this order:\n\n\
         rank  cpu  core  LLC  package  node  capacity of {}\n",
        ranks.cpus().len(),
        ranks.nr_cores(),
        ranks.llcs().len(),
        intf::pp_limits_PP_CAPACITY_MAX
    );
    for (rank, cpu) in ranks.cpus().iter().enumerate() {
        let _ = writeln!(
            text,
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
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::top::tests::made_up;

    #[test]
    fn cpus_that_cannot_be_active_are_not_counted() {
        let mut status = made_up::status(4, 10);
        assert!(headline(&status).contains("1 of 3 CPUs active"), "one is offline");
        status.cpus[1].isolated = true;
        assert!(headline(&status).contains("1 of 2 CPUs active"), "one is isolated");
    }
}
