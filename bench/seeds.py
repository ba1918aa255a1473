#!/usr/bin/env python3
"""The seeds' tables beside ours: docs/bench-seeds.md out of a results.json.

What was published is copied from the mails; src/bench/suites/seeds.toml names them.
"""

import collections
import json
import statistics
import sys

# Non-idle % of three CPUs (first of two runs), and the time to render or the score.
PUBLISHED_2013 = {
    "audio": {"3.9": ("11.96 2.86 2.48", ""), "pst-v4": ("16.14 0.05 0.00", "")},
    "web-audio": {
        "3.9": ("25.00 20.73 21.22", "render 812 ms"),
        "pst-v4": ("42.20 13.63 2.29", "render 880 ms"),
    },
    "native8": {
        "3.9": ("99.22 98.88 99.61", "score 4139"),
        "pst-v4": ("99.34 99.01 99.59", "score 4146"),
    },
    "cyclictest": {"3.9": ("9.13 8.88 8.41", ""), "pst-v4": ("21.32 0.21 0.05", "")},
}
# By threads: what A efficiency, B performance, C power dropped by, %.
PUBLISHED_EBIZZY = {2: "33 36 4", 4: "31 33 3", 8: "28 30 3", 16: "31 33 4"}
# Cores used, performance, power.
PUBLISHED_SCHED_MC = [(8, 1.00, 1.00), (7, 0.86, 0.97), (6, 0.76, 0.92), (4, 0.72, 0.82)]
# schedutil without and with frequency invariance: OR and OH %.
PUBLISHED_RUN_PERIOD = {
    "1/100": "0 79.72; 0 95.86", "10/1000": "0 24.52; 0 71.61", "1/10": "0 21.25; 0 41.78",
    "10/100": "0 26.06; 0 47.96", "100/1000": "0 6.36; 0 26.03", "6/33": "0 15.67; 0 31.61",
    "66/333": "0 8.94; 0 29.46", "4/10": "0 6.26; 0 12.93", "40/100": "0 6.93; 2 14.08",
    "400/1000": "0 1.65; 0 11.58", "5/9": "0 3.70; 0 7.70", "50/90": "1 4.19; 6 8.06",
    "500/900": "0 1.35; 5 6.94", "9/12": "0 1.60; 56 3.59", "90/120": "0 1.88; 21 3.94",
    "900/1200": "0 0.73; 4 4.41",
}  # fmt: skip
OTHERS = {
    "messaging": ["records_per_s", "wake_p99_us", "switches_per_s"],
    "wakeup": ["wake_p50_us", "wake_p99_us", "wake_p999_us", "response_max_us", "cpus_used"],
    "ping-pong": ["records_per_s", "records_per_cpu_s", "cpus_used"],
    "build": ["records_per_s", "switches_per_s", "migrations_per_s"],
}


class Measured:
    """The runs, by load and system."""

    def __init__(self, results):
        self.systems = [system["name"] for system in results["systems"]]
        self.runs = collections.defaultdict(list)
        for run in results["runs"]:
            if not run["failed"]:
                self.runs[run["load"], run["system"]].append(run)

    def figure(self, load, system, name):
        runs = self.runs[load, system]
        values = [run["figures"][name] for run in runs if name in run["figures"]]
        return statistics.median(values) if values else None

    def cpus(self, load, system):
        runs = self.runs[load, system]
        return " ".join(f"{pct:.2f}" for pct in runs[0]["non_idle_pct"]) if runs else "-"

    def task(self, load, system, task, name):
        runs = self.runs[load, system]
        values = [kind[name] for run in runs for kind in run["tasks"] if kind["task"] == task]
        return statistics.median(values) if values else None

    def relative(self, load, system, name):
        """To the first system."""
        ours, base = self.figure(load, system, name), self.figure(load, self.systems[0], name)
        return f"{ours / base:.3f}" if ours is not None and base else "-"


def shown(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"


def table(heading, rows):
    print("| " + " | ".join(heading) + " |")
    print("|" + " --- |" * len(heading))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def comparison_2013(measured):
    print("## Non-idle time of each CPU (2013)\n")
    print("Published: a phone with three CPUs. Measured: the CPUs of this machine.\n")
    for load, published in PUBLISHED_2013.items():
        rows = [(f"published: {name}", cpus, "-", said) for name, (cpus, said) in published.items()]
        for system in measured.systems:
            render = measured.task(load, system, "render", "response_mean_us")
            score = measured.figure(load, system, "records_per_s")
            said = f"render {render / 1000:.0f} ms" if render else ""
            said = f"score {score:.0f}" if score else said
            surplus = shown(measured.figure(load, system, "surplus_non_idle_pct"))
            rows.append((system, measured.cpus(load, system), surplus, said))
        table((load, "non-idle % of each CPU", "surplus, %", ""), rows)


def ebizzy(measured):
    print("## ebizzy (2013)\n")
    print(
        "Published: the drop of efficiency (A), performance (B) and power (C) under power-aware\n"
        "scheduling by the number of tasks, %. Measured: records/s, relative to EEVDF.\n"
    )
    rows = []
    for threads, published in PUBLISHED_EBIZZY.items():
        load = f"ebizzy-{threads}"
        ours = [measured.relative(load, name, "records_per_s") for name in measured.systems]
        rows.append((str(threads), published, *ours))
    table(("threads", "published: A B C", *measured.systems), rows)


def sched_mc(measured):
    print("## Fewer and fewer cores (sched_mc, 2009)\n")
    rows = [
        (f"published: {cores} of 8", f"{performance:.2f}", f"power {power:.2f}")
        for cores, performance, power in PUBLISHED_SCHED_MC
    ]
    loads = sorted({load for load, _ in measured.runs if load.startswith("ebizzy-8 on ")})
    if not loads:
        return
    base = measured.figure(loads[-1], "packing", "records_per_s")
    for load in reversed(loads):
        rate = measured.figure(load, "packing", "records_per_s")
        used = shown(measured.figure(load, "packing", "cpus_used"))
        cores = load.removeprefix("ebizzy-8 on ")
        rows.append((f"packing, at most {cores}", f"{rate / base:.2f}", f"CPUs used {used}"))
    table(("cores", "performance", ""), rows)


def run_period(measured):
    print("## Run and period (schedutil, 2016)\n")
    print(
        "Published: OR (periods overrun) and OH (%) of schedutil without and with frequency\n"
        "invariance. Measured: OR (%), the median response (ms), and OH (%) where there are\n"
        "governors to compare with.\n"
    )
    rows = []
    for load, published in PUBLISHED_RUN_PERIOD.items():
        cells = []
        for system in measured.systems:
            overruns = shown(measured.figure(load, system, "overruns_pct"))
            response = measured.figure(load, system, "response_p50_us")
            overhead = measured.figure(load, system, "overhead_pct")
            cell = f"{overruns}, {response / 1000:.2f}" if response else "-"
            cells.append(cell if overhead is None else f"{cell}, {overhead:.1f}")
        rows.append((load, published, *cells))
    table(("run/period, ms", "published", *measured.systems), rows)


def others(measured):
    print("## Messages, wake-ups, switches, builds\n")
    for load, names in OTHERS.items():
        rows = [
            (name, *(shown(measured.figure(load, system, name)) for system in measured.systems))
            for name in names
        ]
        table((load, *measured.systems), rows)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    machine = results["machine"]
    virtual = machine["virtual_machine"]
    print(
        "# The seeds' workloads, measured\n\n"
        f"Made by `scripts/bench-seeds` {sys.argv[2]}: `scx_powerpack bench --suite seeds` in the\n"
        "test VM, and the figures of the mails beside it. What each figure means is in\n"
        "[measuring.md](measuring.md); the simulator makes the same tables with energy, on the\n"
        "machines of the mails, in [simulator-tables.md](simulator-tables.md).\n"
    )
    where = f"{machine['kernel']}, {machine['cpus']} CPUs, rounds: {results['runs_wanted']}"
    if virtual:
        where += (
            ".\nA virtual machine in virtual time: its CPUs share one stream of\n"
            "instructions, so throughput shows what the scheduler itself costs, and not what\n"
            "parallel work gains or loses; nor is power measured there"
        )
    print(f"{where}.\n")
    measured = Measured(results)
    for part in (comparison_2013, ebizzy, sched_mc, run_period, others):
        part(measured)
    for what in results["missing"]:
        print(f"- Not measured: {what}.")
    costs = collections.defaultdict(float)
    for run in results["runs"]:
        costs[run["load"]] = max(costs[run["load"]], run["figures"].get("measuring_pct", 0))
    costly = [f"{load} {cost:.1f}" for load, cost in sorted(costs.items()) if cost >= 1]
    print(f"- Measuring took less than 1 % of a load's CPU time, but for {', '.join(costly)} %.")


if __name__ == "__main__":
    main()
