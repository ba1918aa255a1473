//! Devices whose interrupts wake no task: network packets of others, timers of the firmware.

use crate::event::Event;
use crate::kernel::Kernel;
use crate::machine::Interrupt;
use crate::power::Blip;

/// Where the interrupts of a device come to, and when.
pub(crate) struct Device {
    /// The same times for all systems.
    random: fastrand::Rng,
    cpu: usize,
    mean_ns: f64,
    busy_ns: u64,
}

impl Device {
    /// The nth of a machine.
    pub(crate) fn new(nth: usize, spec: &Interrupt) -> Self {
        Device {
            random: fastrand::Rng::with_seed(nth as u64),
            cpu: spec.cpu,
            mean_ns: 1e9 / spec.per_s,
            busy_ns: (spec.busy_us * 1e3) as u64,
        }
    }

    /// From one interrupt to the next, exponentially distributed (ns).
    fn gap_ns(&mut self) -> u64 {
        ((-(1.0 - self.random.f64()).ln() * self.mean_ns) as u64).max(1)
    }
}

impl Kernel {
    /// Plans the next interrupt of the nth device.
    pub(super) fn plan_interrupt(&mut self, nth: usize) {
        let gap_ns = self.devices[nth].gap_ns();
        self.events.at(self.now_ns + gap_ns, Event::Interrupt(nth));
    }

    /// It comes: a task that runs there stands still meanwhile.
    pub(super) fn device_interrupt(&mut self, nth: usize) {
        let Device { cpu, busy_ns, .. } = self.devices[nth];
        let cpu = if self.cpus[cpu].online { cpu } else { self.first_online() };
        self.here = cpu;
        if let Some(task) = self.cpus[cpu].running {
            self.account(cpu);
            self.lose(task, busy_ns * self.speed(cpu));
            self.expect_done(cpu, task);
        } else {
            self.interrupt_for(cpu, Blip { busy_ns, whole: true });
        }
        self.plan_interrupt(nth);
    }
}
