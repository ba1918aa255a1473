//! Benchmarks of one suite on several machines, as one.

use std::collections::BTreeSet;

use super::results::{LoadInfo, Machine, Results};

/// What distinguishes the machines is said with each load; those of one name are beside each other.
/// A single one stays as it is.
pub fn join(mut parts: Vec<Results>) -> Results {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let machines: Vec<Machine> = parts.iter().map(|part| part.machine.clone()).collect();
    let differs = |of: fn(&Machine) -> String| {
        machines.iter().any(|machine| of(machine) != of(&machines[0])).then_some(of)
    };
    // What a machine is called differs by kernel too, where one finds its make and another does not.
    let kernel: fn(&Machine) -> String = |machine| machine.kernel.clone();
    let what = differs(kernel)
        .or_else(|| differs(|machine| machine.virtual_machine.clone().unwrap_or_default()))
        .or_else(|| differs(|machine| format!("{} CPUs", machine.cpus)))
        .unwrap_or(kernel);
    let mut parts = parts.into_iter().zip(&machines).map(|(mut part, machine)| {
        let of = what(machine);
        let limits = part.loads.iter_mut().flat_map(|load| &mut load.limits);
        for name in limits.filter_map(|limit| limit.times_load.as_mut()) {
            *name = format!("{name}, {of}");
        }
        let names = part.loads.iter_mut().map(|load| &mut load.name);
        for name in names.chain(part.runs.iter_mut().map(|run| &mut run.load)) {
            *name = format!("{name}, {of}");
        }
        let reasons = part.systems.iter_mut().filter_map(|system| system.failed.as_mut());
        reasons.for_each(|why| *why = format!("{of}: {why}"));
        part
    });
    let mut all = parts.next().expect("there is a file at least");
    let mut meters = BTreeSet::from([all.power_meter.take()]);
    let mut loads: Vec<(usize, LoadInfo)> = all.loads.drain(..).enumerate().collect();
    for part in parts {
        loads.extend(part.loads.into_iter().enumerate());
        all.runs.extend(part.runs);
        all.complete &= part.complete;
        for (system, other) in all.systems.iter_mut().zip(part.systems) {
            system.failed =
                system.failed.take().into_iter().chain(other.failed).reduce(|a, b| a + "; " + &b);
        }
        all.missing.extend(part.missing);
        meters.insert(part.power_meter);
    }
    all.power_meter = meters.into_iter().flatten().reduce(|a, b| a + "; " + &b);
    loads.sort_by_key(|(nth, _)| *nth);
    all.loads = loads.into_iter().map(|(_, load)| load).collect();
    all.missing.sort();
    all.missing.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cells::tests::benchmark;
    use crate::bench::metric::Metric;

    #[test]
    fn loads_say_what_distinguishes_the_machines() {
        let on = |cpus, kernel: &str, value, why: Option<&str>| {
            let mut results = benchmark(value);
            results.machine = Machine { cpus, kernel: kernel.into(), ..Machine::default() };
            results.power_meter = Some(if cpus == 2 { "a" } else { "b" }.to_owned());
            results.systems[1].failed = why.map(str::to_owned);
            results
        };
        let all = join(vec![on(2, "a", 1.0, Some("x")), on(4, "a", 2.0, Some("y"))]);
        assert_eq!(all.values("light, 4 CPUs", "packing", Metric::RecordsPerS), [2.0, 2.1]);
        let names: Vec<&str> = all.loads.iter().map(|load| load.name.as_str()).collect();
        assert_eq!(names, ["light, 2 CPUs", "light, 4 CPUs"]);
        assert_eq!(all.systems[1].failed.as_deref(), Some("2 CPUs: x; 4 CPUs: y"));
        assert_eq!((all.missing.len(), all.power_meter.as_deref()), (1, Some("a; b")));
        let all = join(vec![on(2, "a", 1.0, None), on(2, "b", 2.0, None)]);
        assert_eq!(all.loads[1].name, "light, b");
        let named_by = |name: &str, kernel: &str| {
            let mut results = on(8, kernel, 1.0, None);
            results.machine.virtual_machine = Some(name.to_owned());
            results
        };
        let named = |name: &str| named_by(name, "a");
        assert_eq!(join(vec![named("x"), named("y")]).loads[1].name, "light, y");
        let all = join(vec![named_by("x", "a"), named_by("y", "b")]);
        assert_eq!(all.loads[1].name, "light, b");
    }
}
