#!/usr/bin/env python3
"""Make the table of what scx_powerpack must show out of raw measurements.

Reads files of JSON lines as scripts/lib/bench-guest.sh writes them; each line
has a run, a scheduler, a row and data. Prints Markdown.
"""

import collections
import json
import math
import re
import statistics
import sys

NAMES = {
    "eevdf": "EEVDF",
    "packing": "packing",
    "spread": "spread",
    "bpfland": "scx_bpfland -m powersave",
    "lavd": "scx_lavd --powersave",
}
OURS = ("packing", "spread")
# How long a task may wait on a busy CPU (us), as src/settings/policy.rs has it.
LATENCY_BUDGET_US = 5000
MET, MISSED, UNDECIDED, UNKNOWN = "met", "**missed**", "undecided", "not measured"


class Results:
    """All measurements, by row and scheduler."""

    def __init__(self, lines):
        self.data = collections.defaultdict(list)
        self.failures = []
        self.meta = {}
        self.hogs = []
        for line in lines:
            entry = json.loads(line)
            row, sched = entry["row"], entry["sched"]
            if row == "failed":
                self.failures.append((sched, entry["run"], entry["data"]))
            elif row == "version":
                self.meta[row, sched] = entry["data"]
            elif not sched:
                self.meta[row] = entry["data"]
            else:
                self.data[row, sched].append(entry["data"])
                if row == "hogs":
                    self.hogs.append((sched, entry["data"]))

    def schedulers(self):
        seen = {sched for _, sched in self.data} | {sched for sched, _, _ in self.failures}
        return [sched for sched in NAMES if sched in seen]

    def values(self, row, sched, get):
        return [value for value in map(get, self.data[row, sched]) if value is not None]


def field(*path):
    def get(data):
        for key in path:
            data = data[key]
        return data

    return get


def paired_ratios(hogs, sched):
    """The work of each of `sched`'s runs over the mean of EEVDF's before and after."""
    work = [(name, data["total_work"]) for name, data in hogs]
    ratios = []
    for i, (name, done) in enumerate(work):
        around = [w for n, w in work[max(i - 1, 0) : i] + work[i + 1 : i + 2] if n == "eevdf"]
        if name == sched and around:
            ratios.append(done / statistics.mean(around))
    return ratios


class Row:
    """One line of the table: where its figures are, what they must be."""

    def __init__(self, title, must, values, judge, digits=2):
        self.title, self.must, self.values, self.judge = title, must, values, judge
        self.digits = digits

    def cell(self, results, sched):
        values = self.values(results, sched)
        if not values:
            return "-"
        show = lambda value: f"{value:,.{self.digits}f}"
        middle, low, high = show(statistics.median(values)), show(min(values)), show(max(values))
        return middle if low == high else f"{middle} ({low}..{high})"

    def verdict(self, results):
        medians = {}
        for sched in NAMES:
            values = self.values(results, sched)
            if values:
                medians[sched] = statistics.median(values)
        return self.judge(medians, lambda sched: self.values(results, sched))


def plain(row, *path):
    return lambda results, sched: results.values(row, sched, field(*path))


def at_most(limit, *scheds):
    def judge(medians, _):
        if any(sched not in medians for sched in scheds):
            return UNKNOWN
        return MET if all(medians[sched] <= limit for sched in scheds) else MISSED

    return judge


def median_error(values):
    """The standard error of the median of `values`."""
    if len(values) < 2:
        return 0.0
    return 1.25 * statistics.stdev(values) / math.sqrt(len(values))


def at_most_times(factor, other, *scheds):
    """At most `factor` times the median of scheduler `other`; says how many times.
    Undecided where the noise is larger than what it is above that."""

    def one(medians, values, sched):
        above = medians[sched] - factor * medians[other]
        if above <= 0:
            return MET
        noise = math.hypot(median_error(values(sched)), factor * median_error(values(other)))
        return UNDECIDED if above < noise else MISSED

    def judge(medians, values):
        if other not in medians or any(sched not in medians for sched in scheds):
            return UNKNOWN
        verdict = worst(one(medians, values, sched) for sched in scheds)
        if medians[other] == 0:
            return verdict
        times = (f"{medians[sched] / medians[other]:.2f} x" for sched in scheds)
        return f"{verdict} ({', '.join(times)})"

    return judge


def at_least(limit, *scheds):
    """At least `limit`, undecided where the noise is larger than the distance."""

    def one(medians, values, sched):
        if abs(medians[sched] - limit) < median_error(values(sched)):
            return UNDECIDED
        return MET if medians[sched] >= limit else MISSED

    def judge(medians, values):
        if any(sched not in medians for sched in scheds):
            return UNKNOWN
        return worst(one(medians, values, sched) for sched in scheds)

    return judge


def worst(verdicts):
    return max(verdicts, key=(MET, UNDECIDED, MISSED).index)


def overruns(results, sched):
    rows = [results.values(row, sched, field("overruns")) for row in ("light", "tiny", "mixed")]
    return [sum(run) for run in zip(*rows)] if all(rows) else []


def longest_delay(results, sched):
    rows = [results.values(row, sched, field("max_delay_us")) for row in ("tiny", "mixed")]
    return [max(run) / 1000 for run in zip(*rows)] if all(rows) else []


def interrupts(results, sched):
    total = lambda data: data["timer_per_s"] + data["resched_per_s"]
    return results.values("interrupts", sched, total)


def hogs_ratio(results, sched):
    return paired_ratios(results.hogs, sched)


def least_busy(row):
    return lambda results, sched: results.values(row, sched, lambda d: min(d["non_idle_pct"]))


def work_ratio(results, sched):
    eevdf = results.values("work", "eevdf", field("total_work"))
    if sched == "eevdf" or not eevdf:
        return []
    return [w / statistics.median(eevdf) for w in results.values("work", sched, field("total_work"))]


def switch_us(data):
    found = re.search(r"([\d.]+) us", data["command_output"])
    return float(found.group(1)) if found else None


def drained_ms(data):
    # What is never drained is later than anything that is.
    return math.inf if data["drained_ms"] is None else data["drained_ms"]


def ms(row, *path):
    return lambda results, sched: [v / 1000 for v in results.values(row, sched, field(*path))]


ROWS = [
    Row("light load: non-idle beyond the busiest CPU, %", "packing at most 0.1",
        plain("light", "surplus_non_idle_pct"), at_most(0.1, "packing"), 3),
    Row("many tiny tasks: the same", "packing at most 0.1",
        plain("tiny", "surplus_non_idle_pct"), at_most(0.1, "packing"), 3),
    Row("one big task among small ones: the same", "packing at most 0.1",
        plain("mixed", "surplus_non_idle_pct"), at_most(0.1, "packing"), 3),
    Row("overruns in these three", "packing none", overruns, at_most(0, "packing"), 0),
    Row("light load: longest response, ms", "packing at most 6",
        ms("light", "response", "max_us"), at_most(6, "packing")),
    Row("tiny and big-among-small: longest response beyond the own run time, ms",
        f"packing at most the budget of {LATENCY_BUDGET_US // 1000}",
        longest_delay, at_most(LATENCY_BUDGET_US / 1000, "packing")),
    Row("wake-up latency, mean, us", "spread at most EEVDF's",
        plain("short", "wake_latency", "mean_us"), at_most_times(1, "eevdf", "spread")),
    Row("wake-up latency, longest, us", "spread at most EEVDF's",
        plain("short", "wake_latency", "max_us"), at_most_times(1, "eevdf", "spread"), 1),
    Row("pipe round trip on one CPU, instructions", "at most 1.10 x EEVDF",
        plain("pipe_pinned", "ns_per_round"), at_most_times(1.1, "eevdf", *OURS), 0),
    Row("pipe round trip free on four, instructions", "at most 1.10 x EEVDF",
        plain("pipe_free", "ns_per_round"), at_most_times(1.1, "eevdf", *OURS), 0),
    Row("hackbench -g 2 -l 200, 10^9 instructions", "at most 0.72 x EEVDF",
        plain("hackbench", "seconds"), at_most_times(0.72, "eevdf", *OURS), 3),
    Row("timer and reschedule interrupts a second, idle", "packing at most EEVDF's",
        interrupts, at_most_times(1, "eevdf", "packing"), 1),
    Row("8 hogs, parallel: non-idle of the least busy CPU, %", "at least 99",
        least_busy("hogs"), at_least(99, *OURS), 1),
    Row("8 hogs, parallel: work in pairs with EEVDF", "at least 0.99 x",
        hogs_ratio, at_least(0.99, *OURS), 3),
    Row("8 hogs, virtual time: work per instruction", "at least 0.99 x EEVDF",
        work_ratio, at_least(0.99, *OURS), 4),
    Row("mode switch: policy applied, us", "at most 1,000",
        lambda results, sched: results.values("switch", sched, switch_us),
        at_most(1000, "packing"), 0),
    Row("mode switch: surplus CPUs drained, ms", "at most 50",
        lambda results, sched: results.values("switch", sched, drained_ms),
        at_most(50, "packing"), 0),
    Row("load time, ms", "at most scx_bpfland's",
        plain("load", "ms"), at_most_times(1, "bpfland", "packing"), 0),
    Row("agent at rest, % of a CPU", "under 0.2",
        lambda results, sched: results.values(
            "agent", sched, lambda d: d["cpu_ns"] / d["seconds"] / 1e7),
        at_most(0.2, "packing"), 3),
    Row("agent, resident MB", "under 20",
        lambda results, sched: results.values("agent", sched, lambda d: d["rss_kib"] * 1024 / 1e6),
        at_most(20, "packing"), 1),
]


def table(header, lines):
    lines = [header, ["---"] * len(header)] + lines
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main_table(results):
    scheds = results.schedulers()
    lines = [
        [row.title, row.must] + [row.cell(results, s) for s in scheds] + [row.verdict(results)]
        for row in ROWS
        if any(row.values(results, sched) for sched in scheds)
    ]
    return table(["", "must be"] + [NAMES[s] for s in scheds] + ["verdict"], lines)


def light_table(results):
    """Which CPUs the light load kept awake."""
    lines = []
    for row, sched, name in [("floor", "eevdf", "all pinned to one CPU (the floor)")] + [
        ("light", sched, NAMES[sched]) for sched in results.schedulers()
    ]:
        runs = results.data[row, sched]
        if not runs:
            continue
        # One run's CPUs, not medians of each: which CPU is busy differs by run.
        run = sorted(runs, key=field("surplus_non_idle_pct"))[(len(runs) - 1) // 2]
        cpus = ", ".join(f"{pct:.1f}" for pct in run["non_idle_pct"])
        longest = run["response"]["max_us"] / 1000
        lines.append([name, cpus, f"{run['surplus_non_idle_pct']:.3f}", f"{longest:.1f}"])
    header = ["scheduler", "non-idle % of each CPU", "beyond the busiest", "longest response, ms"]
    return table(header, lines) if lines else ""


def text(results):
    meta = results.meta
    versions = [
        f"{NAMES[sched]}: {meta['version', sched].strip()}"
        for sched in NAMES
        if ("version", sched) in meta and sched != "spread"
    ]
    parts = [
        "# Baseline",
        f"Generated by `{meta.get('command', '?')}` in {meta.get('took', '?')}"
        f" at commit {meta.get('commit', '?')}; not edited by hand."
        " [measuring.md](measuring.md) says what each figure means.",
        f"Linux {meta.get('kernel', '?')}; QEMU {meta.get('qemu', '?')}, software emulation."
        f" {'; '.join(versions)}.",
        f"Median of {meta.get('runs', '?')} runs or more (smallest..largest)."
        " Instructions are guest instructions.",
        main_table(results),
    ]
    light = light_table(results)
    if light:
        parts += ["## The light load, CPU by CPU (the median run)", light]
    if results.failures:
        lines = [f"- {NAMES[s]}, run {run}: {reason}" for s, run, reason in results.failures]
        parts += ["## What did not run", "\n".join(lines)]
    if meta.get("complaints"):
        parts.append(f"The kernel's log has {meta['complaints']} complaints.")
    return "\n\n".join(parts) + "\n"


def main():
    lines = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            lines += [line for line in file if line.strip()]
    sys.stdout.write(text(Results(lines)))


if __name__ == "__main__":
    main()
