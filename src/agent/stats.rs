//! What happened since the scheduler was loaded, over scx_stats.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use scx_stats::prelude::*;

use crate::bpf_intf as intf;
use crate::control::protocol::{Request, ask};
use crate::machine::kernel::check_root;
use crate::scheduler::counters::{Counters, EVENTS};

/// The scx_stats server's description of what it serves.
pub fn server_data() -> StatsServerData<(), Counters> {
    let open: Box<dyn StatsOpener<(), Counters>> = Box::new(|(request, response)| {
        request.send(())?;
        let mut last = response.recv()?;
        let read: Box<dyn StatsReader<(), Counters>> =
            Box::new(move |_args, (request, response)| {
                request.send(())?;
                let now = response.recv()?;
                let delta = now.since(&last);
                last = now;
                delta.to_json()
            });
        Ok(read)
    });
    StatsServerData::new().add_meta(Counters::meta()).add_ops("top", StatsOps { open, close: None })
}

/// `--help-stats`.
pub fn describe() -> Result<()> {
    server_data().describe_meta(&mut std::io::stdout(), None)
}

/// `--monitor`: the same as [`monitor`], of a scheduler that runs. Fails when none does, and for anyone but root.
pub fn monitor_running(interval: Option<Duration>) -> Result<()> {
    check_root("reading the statistics")?;
    // Without, the statistics would be waited for, in silence.
    ask(&Request::Status)?;
    monitor(interval)
}

/// `--monitor` and `--stats`: print what happened in each interval, until the
/// process ends; what did not happen is left out, so that a line fits a terminal.
pub fn monitor(interval: Option<Duration>) -> Result<()> {
    let Some(interval) = interval else { return Ok(()) };
    scx_utils::monitor_stats::<Counters>(&[], interval, || false, |counters| print(&counters))
}

fn print(counters: &Counters) -> Result<()> {
    // Not print!, which panics where nobody reads any more.
    let mut out = std::io::stdout().lock();
    write!(
        out,
        "active {:>3}  demand {:>6.1}%",
        counters.active_cpus,
        counters.demand as f64 / intf::pp_limits_PP_CAPACITY_MAX as f64 * 100.0
    )?;
    for (event, nr) in EVENTS.iter().zip(counters.events()).filter(|&(_, nr)| nr > 0) {
        write!(out, "  {} {nr}", event.name)?;
    }
    writeln!(out)?;
    Ok(())
}
