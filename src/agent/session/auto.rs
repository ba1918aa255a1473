//! What mode `auto` does at a look: rules first, and energy where they leave it open.

use std::time::Instant;

use log::{info, warn};
use scx_utils::autopower::PowerProfile;

use super::Session;
use crate::agent::energy_choice::Look;
use crate::settings::auto::Evidence;
use crate::settings::hints::EppByMode;

impl Session<'_> {
    /// Has `auto` choose; what cannot be done is said and tried again.
    pub(super) fn choose(&mut self) {
        let now = match self.scheduler.snapshot(&self.ranks) {
            Ok(now) => now,
            Err(err) => return warn!("cannot measure the load: {err:#}"),
        };
        let limits = match self.scheduler.limits() {
            Ok(limits) => limits,
            Err(err) => return warn!("cannot see which cgroups are limited: {err:#}"),
        };
        let (load_pct, throttles) = (self.load.pct(&now), self.throttled.is_recent(&limits));
        // What we have set ourselves is no evidence.
        let sets_epp =
            self.kept.desired.hints.epp != EppByMode::default() || self.kept.hints.holds_epp();
        let profile = match self.kept.profile {
            PowerProfile::Unknown if !sets_epp => None,
            profile => Some(profile),
        };
        let evidence = Evidence::gather(load_pct, throttles, profile);
        let rules = &self.kept.desired.rules;
        let (mode, reason) = self.energy.choose(Look {
            now: &now,
            evidence: &evidence,
            rules,
            ruled: self.chooser.choose(&evidence, rules),
            latency_budget: self.policy.latency_budget,
            is_watched: self.leases.left(Instant::now()).is_some(),
        });
        if mode != self.policy.mode {
            if !self.energy.compares() {
                info!("auto: {reason}");
            }
            // --pack small is for packing alone: in another mode it waits.
            let args = self.kept.desired.args.for_mode(mode);
            if let Err(err) = self.apply(self.policy.with(mode, &args)) {
                warn!("auto cannot switch to mode {mode}: {err:#}");
                self.energy.interrupt();
            }
        }
        self.reason = Some(reason);
    }
}
