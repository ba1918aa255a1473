//! What mode `auto` does at a look: rules first, and energy where they leave it open.

use std::time::Instant;

use log::{info, warn};
use scx_utils::autopower::PowerProfile;

use super::Session;
use crate::agent::energy_choice::Look;
use crate::settings::auto::Evidence;
use crate::settings::hints::EppByMode;

impl Session<'_> {
    /// Has `auto` choose, at a look that `is_due` or as something is asked for meanwhile; what cannot be done is
    /// said and tried again.
    pub(super) fn choose(&mut self, is_due: bool) {
        let now = match self.scheduler.snapshot(&self.ranks) {
            Ok(now) => now,
            Err(err) => return warn!("cannot measure the load: {err:#}"),
        };
        let limits = match self.scheduler.limits() {
            Ok(limits) => limits,
            Err(err) => return warn!("cannot see which cgroups are limited: {err:#}"),
        };
        let load_pct = self.load.pct(&now);
        if is_due {
            self.throttled.look(&limits);
        }
        // What we have set ourselves is no evidence.
        let sets_epp =
            self.kept.desired.hints.epp != EppByMode::default() || self.kept.hints.holds_epp();
        let profile = match self.kept.profile {
            PowerProfile::Unknown if !sets_epp => None,
            profile => Some(profile),
        };
        let evidence = Evidence::gather(load_pct, self.throttled.is_recent(), profile);
        let rules = &self.kept.desired.rules;
        let ruled = if is_due {
            self.kept.chooser.choose(&evidence, rules)
        } else {
            self.kept.chooser.rule(&evidence, rules)
        };
        let (mode, reason) = self.energy.choose(Look {
            now: &now,
            evidence: &evidence,
            rules,
            ruled,
            latency_budget: self.policy.latency_budget,
            is_watched: self.leases.defer_changes(Instant::now()),
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
