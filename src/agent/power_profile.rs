//! The desktop's power profile: power-profiles-daemon, or another service with its interface, reports
//! by D-Bus signals when it changes. Nothing is polled.

use std::thread;

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

/// Sends [`Event::Profile`] at once and after each change, for as long as the process lives.
/// Without a system bus, or when it goes, the profile is unknown.
pub fn watch_profile(events: Sender<Event>) -> Result<()> {
    thread::Builder::new()
        .name("profile-watch".into())
        .spawn(move || {
            if let Err(err) = listen(&events) {
                debug!("power profiles: {err:#}");
            }
            // The bus is gone: what it said last is old.
            let _ = events.send(Event::Profile(PowerProfile::Unknown));
        })
        .context("cannot start a thread for the power profile")?;
    Ok(())
}

fn listen(events: &Sender<Event>) -> Result<()> {
    let bus = Connection::system().context("no system bus")?;
    let signals = MessageIterator::from(&bus);
    let proxy = DBusProxy::new(&bus)?;
    for (name, path) in NAMES {
        let changes = format!(
            "type='signal',interface='org.freedesktop.DBus.Properties',\
             member='PropertiesChanged',path='{path}'"
        );
        // The daemon comes and goes too.
        let owners = format!(
            "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='{name}'"
        );
        for rule in [changes, owners] {
            proxy.add_match_rule(rule.as_str().try_into()?)?;
        }
    }
    let mut last = None;
    let mut report = || {
        let profile = read(&bus).unwrap_or(PowerProfile::Unknown);
        if last.replace(profile) == Some(profile) {
            return true;
        }
        info!("power profile: {profile}");
        events.send(Event::Profile(profile)).is_ok()
    };
    report();
    for message in signals {
        if message?.message_type() == Type::Signal && !report() {
            break;
        }
    }
    Ok(())
}

/// The profile that a running daemon reports; one that does not run is not started.
fn read(bus: &Connection) -> Option<PowerProfile> {
    let proxy = DBusProxy::new(bus).ok()?;
    NAMES.into_iter().find_map(|(name, path)| {
        if !proxy.name_has_owner(name.try_into().ok()?).ok()? {
            return None;
        }
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
