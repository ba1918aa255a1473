//! What the scheduler reports only on request: latencies, the busiest tasks, the
//! placements of one.

use std::cell::RefCell;
use std::io::Read;

use anyhow::{Context, Result};
use libbpf_rs::{Iter, RingBufferBuilder};

use super::placement::{Placement, TaskStatus};
use super::{NO_DATA, Scheduler, load, store};
use crate::bpf_intf as intf;

impl Scheduler<'_> {
    /// Whether wake-up latencies are measured.
    pub fn watch_latency(&mut self, watch: bool) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_mut().context(NO_DATA)?;
        store(&mut bss.watch_latency, u32::from(watch));
        Ok(())
    }

    /// Whose placements are reported: those of a thread or process, or of none.
    pub fn watch_pid(&mut self, pid: Option<u32>) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_mut().context(NO_DATA)?;
        store(&mut bss.watched_pid, pid.unwrap_or(0));
        Ok(())
    }

    /// The placements since the last call, and how many were lost since the scheduler
    /// was loaded.
    pub fn placements(&self) -> Result<(Vec<Placement>, u64)> {
        let found = RefCell::new(Vec::new());
        let mut ring = RingBufferBuilder::new();
        ring.add(&self.skel.maps.why_ring, |bytes| {
            // SAFETY: plain numbers; BPF writes nothing else, and it may lie anywhere.
            let record: intf::pp_why_record =
                unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
            found.borrow_mut().push(Placement::of(&record));
            0
        })
        .context("cannot read the ring of placements")?;
        let ring = ring.build().context("cannot read the ring of placements")?;
        ring.consume().context("cannot read the ring of placements")?;
        drop(ring);
        let bss = self.skel.maps.bss_data.as_ref().context(NO_DATA)?;
        Ok((found.into_inner(), load(&bss.why_lost)))
    }

    /// The tasks with the highest utilization, at most `most` of them.
    pub fn busiest(&self, max: usize) -> Result<Vec<TaskStatus>> {
        let link = self.skel.progs.list_tasks.attach().context("cannot list tasks")?;
        let mut bytes = Vec::new();
        Iter::new(&link)?.read_to_end(&mut bytes).context("cannot list tasks")?;
        let mut tasks: Vec<TaskStatus> = bytes
            .chunks_exact(size_of::<intf::pp_listed_task>())
            // SAFETY: plain numbers, as BPF has written them.
            .map(|row| unsafe { std::ptr::read_unaligned(row.as_ptr().cast()) })
            .map(|row: intf::pp_listed_task| TaskStatus {
                pid: row.pid,
                tgid: row.tgid,
                cpu: row.cpu as usize,
                util: row.util,
            })
            .collect();
        tasks.sort_by_key(|task| (std::cmp::Reverse(task.util), task.pid));
        tasks.truncate(max);
        Ok(tasks)
    }
}
