//! The desktop's power profile: power-profiles-daemon, or another service with its interface, reports
//! by D-Bus signals when it changes; and whether a service sets the energy/performance preference.
//! Nothing is polled.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use crossbeam::channel::Sender;
use log::{debug, info};
use scx_utils::autopower::PowerProfile;
use zbus::blocking::fdo::{DBusProxy, PropertiesProxy};
use zbus::blocking::{Connection, MessageIterator};
use zbus::message::Type;
use zbus::names::InterfaceName;

use crate::agent::events::Event;

/// The daemon's names on the bus, the newer one first; each is its interface's too.
const NAMES: [(&str, &str); 2] = [
    ("org.freedesktop.UPower.PowerProfiles", "/org/freedesktop/UPower/PowerProfiles"),
    ("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles"),
];

/// TuneD sets the preference by its own profiles, with or without the interface above.
const TUNED: &str = "com.redhat.tuned";

/// All that set it.
const SETTERS: [&str; 3] = [NAMES[0].0, NAMES[1].0, TUNED];

/// What the desktop's services say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desktop {
    /// `Unknown`: none is reported.
    pub profile: PowerProfile,
    /// Whether one of those that set the energy/performance preference runs.
    pub sets_epp: bool,
}

/// Without any such service.
const NONE: Desktop = Desktop { profile: PowerProfile::Unknown, sets_epp: false };

/// Between looks whether a bus that is gone has come back.
const BUS_PERIOD: Duration = Duration::from_secs(5);

/// Sends [`Event::Desktop`] at once and after each change, for as long as the process lives.
/// Without a system bus, or while it is gone, there are no such services.
pub fn watch_profile(events: Sender<Event>) -> Result<()> {
    thread::Builder::new()
        .name("profile-watch".into())
        .spawn(move || watch(&events))
        .context("cannot start a thread for the power profile")?;
    Ok(())
}

/// A bus that was there comes back, as it is only restarted. One that was never there is not waited for.
fn watch(events: &Sender<Event>) {
    let mut was_there = false;
    loop {
        let mut listens = false;
        if let Err(err) = listen(events, &mut listens) {
            debug!("power profiles: {err:#}");
        }
        // What it said last is old.
        let is_news = listens || !was_there;
        if is_news && events.send(Event::Desktop(NONE)).is_err() {
            return;
        }
        was_there |= listens;
        if !was_there {
            return;
        }
        if listens {
            info!("the system bus is gone: no power profile until it is back");
        }
        thread::sleep(BUS_PERIOD);
    }
}

/// Until the bus is gone; `listens` is set once it would report changes.
fn listen(events: &Sender<Event>, listens: &mut bool) -> Result<()> {
    let bus = Connection::system().context("no system bus")?;
    // Replies that came after many signals on the connection that nobody reads meanwhile would never come: anyone
    // may send us some.
    let calls = Connection::system().context("no second connection to the system bus")?;
    let signals = MessageIterator::from(&bus);
    let proxy = DBusProxy::new(&bus)?;
    // By whoever has the name: others may send the same.
    let changes = NAMES.map(|(name, path)| {
        format!(
            "type='signal',sender='{name}',interface='org.freedesktop.DBus.Properties',\
             member='PropertiesChanged',path='{path}'"
        )
    });
    // The daemons come and go too.
    let owners = SETTERS.map(|name| {
        format!(
            "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='{name}'"
        )
    });
    for rule in changes.iter().chain(&owners) {
        proxy.add_match_rule(rule.as_str().try_into()?)?;
    }
    *listens = true;
    let mut last = None;
    let mut report = || {
        let desktop = read(&calls);
        let before = last.replace(desktop);
        if before == Some(desktop) {
            return true;
        }
        if before.map(|before| before.profile) != Some(desktop.profile) {
            info!("power profile: {}", desktop.profile);
        }
        events.send(Event::Desktop(desktop)).is_ok()
    };
    report();
    for message in signals {
        if message?.message_type() == Type::Signal && !report() {
            break;
        }
    }
    Ok(())
}

/// What the services that run say; one that does not run is not started.
fn read(bus: &Connection) -> Desktop {
    Desktop {
        profile: read_profile(bus).unwrap_or(PowerProfile::Unknown),
        sets_epp: SETTERS.iter().any(|name| runs(bus, name)),
    }
}

fn runs(bus: &Connection, name: &str) -> bool {
    let owner = || DBusProxy::new(bus).ok()?.name_has_owner(name.try_into().ok()?).ok();
    owner().unwrap_or(false)
}

fn read_profile(bus: &Connection) -> Option<PowerProfile> {
    NAMES.into_iter().filter(|(name, _)| runs(bus, name)).find_map(|(name, path)| {
        let daemon = PropertiesProxy::builder(bus).destination(name).ok()?.path(path).ok()?;
        let interface: InterfaceName<'_> = name.try_into().ok()?;
        let value = daemon.build().ok()?.get(interface, "ActiveProfile").ok()?;
        let profile: String = value.try_into().ok()?;
        named(&profile)
    })
}

/// As the daemon calls them.
fn named(profile: &str) -> Option<PowerProfile> {
    match profile {
        "power-saver" => Some(PowerProfile::Powersave),
        "balanced" => Some(PowerProfile::Balanced { power: false }),
        "performance" => Some(PowerProfile::Performance),
        _ => None,
    }
}
