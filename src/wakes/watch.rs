//! Loading the programs, and reading what they report.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use anyhow::{Context, Result, ensure};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject, RingBufferBuilder};
use log::debug;

use super::bpf_skel::{WakesSkel, WakesSkelBuilder};
use super::event::Event;
use super::intf;
use crate::machine::kernel::KernelNames;
use crate::scheduler::quiet_libbpf;

/// Those that every kernel has for which this makes sense.
const NEEDED: [&str; 4] = ["cpu_idle", "sched_switch", "sched_waking", "irq_handler_entry"];
/// A program that is no tracepoint's: of the function that a scheduler calls.
const KICK: (&str, &str) = ("kick_cpu", "scx_bpf_kick_cpu");

const UNREADABLE: &str = "cannot read the ring of events";

/// The programs, which trace until this is dropped.
pub struct Watch<'a> {
    skel: WakesSkel<'a>,
    _links: Vec<Link>,
    sees_kicks: bool,
}

impl<'a> Watch<'a> {
    /// Traces `cpu` from now on. Fails with a sentence on a kernel that cannot be traced.
    pub fn start(cpu: usize, object: &'a mut MaybeUninit<OpenObject>) -> Result<Self> {
        quiet_libbpf(false);
        let names = KernelNames::read()?;
        for tracepoint in NEEDED {
            ensure!(
                has_tracepoint(&names, tracepoint),
                "this kernel has no tracepoint {tracepoint}, by which wake-ups are seen: boot one \
                 built with CONFIG_TRACEPOINTS and CONFIG_BPF_EVENTS"
            );
        }
        let mut skel =
            WakesSkelBuilder::default().open(object).context("cannot open the BPF object")?;
        for mut program in skel.open_object_mut().progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            // Each is named as its tracepoint.
            let there =
                if name == KICK.0 { names.has(KICK.1) } else { has_tracepoint(&names, &name) };
            program.set_autoload(there);
        }
        skel.maps.rodata_data.as_mut().context("no .rodata")?.watched_cpu = cpu as u32;
        let skel = skel.load().context("the kernel refused the tracing programs")?;
        let (links, sees_kicks) = attach(&skel)?;
        let mut watch = Watch { skel, _links: links, sees_kicks };
        // Attaching itself interrupts all CPUs.
        watch.look()?;
        Ok(watch)
    }

    /// What has happened since the last call, in its order.
    pub fn look(&mut self) -> Result<Vec<Event>> {
        let found = RefCell::new(Vec::new());
        let mut ring = RingBufferBuilder::new();
        ring.add(&self.skel.maps.ring, |bytes| {
            // SAFETY: plain numbers; BPF writes nothing else, and it may lie anywhere.
            let record: intf::pp_wakes_event =
                unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
            found.borrow_mut().push(Event::of(&record));
            0
        })
        .context(UNREADABLE)?;
        let ring = ring.build().context(UNREADABLE)?;
        ring.consume().context(UNREADABLE)?;
        drop(ring);
        Ok(found.into_inner())
    }

    /// How many events were lost so far, as they came too fast.
    pub fn lost(&self) -> u64 {
        self.skel.maps.bss_data.as_ref().map_or(0, |bss| bss.lost)
    }

    /// Whether it is seen that a sched_ext scheduler has the CPU look for a task.
    pub fn sees_kicks(&self) -> bool {
        self.sees_kicks
    }
}

/// The kernel's BTF has a type for each tracepoint.
fn has_tracepoint(names: &KernelNames, tracepoint: &str) -> bool {
    names.has(&format!("btf_trace_{tracepoint}"))
}

/// Attaches what was loaded; kicks are seen where the kernel has kprobes.
fn attach(skel: &WakesSkel<'_>) -> Result<(Vec<Link>, bool)> {
    use libbpf_rs::skel::Skel;

    let (mut links, mut sees_kicks) = (Vec::new(), false);
    for program in skel.object().progs_mut().filter(|program| program.autoload()) {
        let is_kick = program.name() == KICK.0;
        match program.attach() {
            Ok(link) => {
                sees_kicks |= is_kick;
                links.push(link);
            }
            Err(err) if is_kick => debug!("kicks are not seen: {err}"),
            Err(err) => {
                let name = program.name().to_string_lossy().into_owned();
                return Err(err).with_context(|| format!("cannot trace {name}"));
            }
        }
    }
    Ok((links, sees_kicks))
}
