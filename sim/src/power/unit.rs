//! A part of the machine that is awake or in an idle state as a whole: a core, an
//! LLC, a package.

use crate::machine::IdleState;

const PJ_PER_UJ: f64 = 1e6;

/// A core, an LLC or a package.
pub struct Unit {
    /// How many of its parts are awake: threads, cores, LLCs.
    pub awake: usize,
    /// While it is awake (mW).
    active_mw: f64,
    states: Vec<IdleState>,
    state: Option<usize>,
    power_mw: f64,
    since_ns: u64,
    /// mW times ns.
    pub energy_pj: f64,
    /// Awake, then its idle states.
    pub residency_ns: Vec<u64>,
}

impl Unit {
    pub fn new(states: Vec<IdleState>, active_mw: f64) -> Self {
        Unit {
            awake: 0,
            active_mw,
            residency_ns: vec![0; states.len() + 1],
            states,
            state: None,
            power_mw: 0.0,
            since_ns: 0,
            energy_pj: 0.0,
        }
    }

    /// Accounts until `now_ns`; the energy used so far (pJ).
    pub fn settle(&mut self, now_ns: u64) -> f64 {
        let passed = now_ns.saturating_sub(self.since_ns);
        self.energy_pj += self.power_mw * passed as f64;
        self.residency_ns[self.state.map_or(0, |state| state + 1)] += passed;
        self.since_ns = now_ns;
        self.energy_pj
    }

    pub fn set_power(&mut self, power_mw: f64, now_ns: u64) {
        self.settle(now_ns);
        self.power_mw = power_mw;
    }

    /// An interrupt keeps it awake for `ns` at an instant (it is woken and asleep again then): what that takes
    /// beyond the idle state that it is in.
    pub fn add_awake(&mut self, ns: u64) {
        let asleep_mw = self.state.map_or(self.active_mw, |state| self.states[state].mw);
        self.energy_pj += (self.active_mw - asleep_mw) * ns as f64;
    }

    /// One more part wakes: its exit latency (ns).
    pub fn wake(&mut self, now_ns: u64) -> u64 {
        self.awake += 1;
        self.set_power(self.active_mw, now_ns);
        let left = self.state.take().map(|state| self.states[state].exit_us);
        left.map_or(0, |exit_us| (exit_us * 1e3) as u64)
    }

    /// All its parts sleep: it does in `state`, or stays as if awake.
    pub fn sleep(&mut self, state: Option<usize>, now_ns: u64) {
        self.settle(now_ns);
        let entered = state.and_then(|state| self.states.get(state));
        self.power_mw = entered.map_or(self.active_mw, |state| state.mw);
        if self.state != state {
            self.energy_pj += entered.map_or(0.0, |state| state.enter_uj * PJ_PER_UJ);
        }
        self.state = state.filter(|_| entered.is_some());
    }

    /// The same, in the deepest state that is worth it for that time; `None`: no state.
    pub fn sleep_for(&mut self, expected_ns: Option<u64>, now_ns: u64) {
        let fits =
            |ns: u64| self.states.iter().rposition(|state| state.residency_us * 1e3 <= ns as f64);
        self.sleep(expected_ns.and_then(fits), now_ns);
    }
}
