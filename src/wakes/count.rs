//! Counting wake-ups, and the time in which all CPUs of a package are idle, by a program that traces idle states.

use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;

use anyhow::{Context, Result, ensure};
use libbpf_rs::Link;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use powerpack_load::clock;

use super::count_intf as intf;
use super::count_skel::{CountSkel, CountSkelBuilder};
use crate::machine::cpu_counts::{ByCpu, polling_state};
use crate::machine::sensors::number;
use crate::scheduler::quiet_libbpf;

/// What no idle state is numbered.
const NO_STATE: u32 = u32::MAX - 1;

/// Counts from its beginning until it is dropped. To begin interrupts all CPUs, so that each is seen to sleep from
/// then on; to look interrupts none.
pub struct IdleCount {
    skel: CountSkel<'static>,
    _link: Link,
    cpus: Vec<usize>,
    /// The numbers of their CPUs.
    packages: Vec<u32>,
}

impl IdleCount {
    /// Counts for the CPUs that are online, `cpus`. Fails with a sentence where the kernel cannot be traced, or not by
    /// this user.
    pub fn start(cpus: Vec<usize>) -> Result<Self> {
        let numbers = 0..intf::pp_count_limits_PP_COUNT_CPUS as usize;
        ensure!(cpus.iter().all(|cpu| numbers.contains(cpu)), "CPUs beyond {}", numbers.end);
        quiet_libbpf(false);
        // It has the size of a pointer, and what it points to is freed.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut skel =
            CountSkelBuilder::default().open(object).context("cannot open the BPF object")?;
        let rodata = skel.maps.rodata_data.as_mut().context("no .rodata")?;
        let first = cpus.first().copied().unwrap_or(0);
        rodata.polling_state = polling_state(Path::new("/"), first).unwrap_or(NO_STATE);
        let mut packages: Vec<(u64, u32)> = vec![];
        for &cpu in &cpus {
            let id = package_id(cpu);
            let known = packages.iter().position(|(known, _)| *known == id);
            let nth = known.unwrap_or(packages.len());
            if known.is_none() {
                packages.push((id, 0));
            }
            packages[nth].1 += 1;
            rodata.package_of_cpu[cpu] = nth as u16;
        }
        let packages: Vec<u32> = packages.into_iter().map(|(_, cpus)| cpus).collect();
        rodata.cpus_of_package[..packages.len()].copy_from_slice(&packages);
        let skel = skel.load().context("the kernel refused the program that counts idle states")?;
        let link = skel.progs.count_idle.attach().context("cannot trace idle states")?;
        Ok(IdleCount { skel, _link: link, cpus, packages })
    }

    /// How often each CPU was woken since the beginning.
    pub fn wake_ups(&self) -> ByCpu {
        let Some(bss) = &self.skel.maps.bss_data else { return ByCpu::new() };
        // SAFETY: it is there; BPF writes to it at any time.
        let of = |cpu: usize| unsafe { ptr::read_volatile(&raw const bss.cpus[cpu].wake_ups) };
        self.cpus.iter().map(|&cpu| (cpu, of(cpu))).collect()
    }

    /// For how long all CPUs of a package were idle since the beginning (ns), mean over the packages. A CPU counts from
    /// when it first falls asleep.
    pub fn all_idle_ns(&self) -> u64 {
        let Some(bss) = &self.skel.maps.bss_data else { return 0 };
        let of = |nth: usize| {
            // SAFETY: as above.
            let ns = unsafe { ptr::read_volatile(&raw const bss.packages[nth].all_idle_ns) };
            // While they are idle it is less than zero by when that began.
            if (ns as i64) < 0 { ns.wrapping_add(clock::now_ns()) } else { ns }
        };
        (0..self.packages.len()).map(of).sum::<u64>() / self.packages.len().max(1) as u64
    }
}

/// What the kernel numbers its package; one where it does not know any.
fn package_id(cpu: usize) -> u64 {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
    number(Path::new(&file)).unwrap_or(0)
}
