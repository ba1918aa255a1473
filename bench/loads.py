"""The tables that scripts/bench-loads makes.

loads.py COMMITS DIR   docs/loads.md, from the parts' results
"""

import json
import re
import statistics
import sys
from pathlib import Path

from table import median_error, paired_ratios

# A CPU is used if it is non-idle for more than this (%).
USED_PCT = 1.0
# hackbench -g 2 -l 200: 20 senders for each of 20 receivers in a group.
MESSAGES = 2 * 20 * 20 * 200
HARD = {
    "shell_loop": "300 short-lived tasks, one after the other",
    "build": "a parallel build, 8 at a time",
    "pipeline": "a pipeline of four programs",
    "step": "a step from 5 to 95 %: from its first moment",
    "hog": "a hog among 8 small tasks: those",
    "real_time": "real-time tasks take 70 % of CPUs 0 and 1: 8 others",
    "pinned": "four tasks pinned to CPUs 6 and 7: 8 others",
}
TITLES = {
    "eevdf": "EEVDF",
    "bpfland": "scx_bpfland -m powersave",
    "lavd": "scx_lavd --powersave",
}


def title(sched):
    return TITLES.get(sched, sched)


def read(paths):
    """{(workload, scheduler): {"result": .., "counters": ..}}, schedulers in order."""
    runs, kernel = {}, ""
    for path in paths:
        for line in Path(path).read_text().splitlines():
            record = json.loads(line)
            if record["name"] == "kernel":
                kernel = record["result"]
                continue
            name = record["name"].split(":")[-2] if ":" in record["name"] else record["name"]
            run = runs.setdefault((name, record["sched"]), {})
            run.update({key: record[key] for key in ("result", "counters", "failed") if key in record})
    return kernel, runs


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(header, rows):
    return "\n".join([row(header), row(["---"] * len(header)), *map(row, rows)])


def spread_of(result):
    """CPUs used, and what the others are non-idle in all (%)."""
    used = [pct for pct in result["non_idle_pct"] if pct > USED_PCT]
    rest = sum(pct for pct in result["non_idle_pct"] if pct <= USED_PCT)
    return len(used), sum(used), rest


def hard_cell(name, run):
    if "result" not in run:
        return run.get("failed", "not run")
    result = run["result"]
    used, total, _ = spread_of(result)
    if "elapsed_s" in result:
        return f"{result['elapsed_s']:.2f} s; {total:.0f} % on {used}"
    # Of the first kind of task: the small ones, beside a hog.
    longest = result["tasks"][0]["response"]["max_us"] / 1e3
    overruns = result["overruns"]
    return f"{total:.0f} % on {used}; {overruns} overruns; {longest:.1f} ms"


def hard_table(path):
    if not Path(path).exists():
        return "Not measured."
    _, runs = read([path])
    scheds = list(dict.fromkeys(sched for _, sched in runs if sched))
    rows = [[label, *(hard_cell(name, runs.get((name, sched), {})) for sched in scheds)]
            for name, label in HARD.items()]
    return table(["load", *map(title, scheds)], rows)


def throughput_table(path):
    """Medians of the ratios to the kernel's runs before and after, and their spread."""
    if not Path(path).exists():
        return "Not measured."
    rates = {}
    for line in Path(path).read_text().splitlines():
        record = json.loads(line)
        if "result" not in record or record["name"] == "kernel":
            continue
        result = record["result"]
        rate = result["total_work"] if "total_work" in result else 1 / result["elapsed_s"]
        rates.setdefault(record["name"], []).append((record["sched"], {"total_work": rate}))
    scheds = list(dict.fromkeys(sched for runs in rates.values() for sched, _ in runs if sched != "eevdf"))
    rows = []
    for name, runs in rates.items():
        ratios = {sched: sorted(paired_ratios(runs, sched)) for sched in scheds}
        rows.append([name, *(
            f"{statistics.median(r):.3f} ± {median_error(r):.3f} ({r[0]:.2f}..{r[-1]:.2f})"
            for r in ratios.values())])
    return table(["load", *map(title, scheds)], rows)


def cost_table(path):
    """Rows of bench-guest.sh from machines of several sizes: {cpus: {row: {sched: [..]}}}."""
    sizes = {}
    for file in sorted(Path(path).glob("cost-*.json"), key=lambda p: int(p.stem.split("-")[1])):
        cpus = int(file.stem.split("-")[1])
        for line in file.read_text().splitlines():
            record = json.loads(line)
            cell = {"pipe_free": lambda d: d["ns_per_round"],
                    "pipe_pinned": lambda d: d["ns_per_round"],
                    "hackbench": lambda d: d["seconds"] * 1e9 / MESSAGES}.get(record["row"])
            if cell:
                sizes.setdefault(cpus, {}).setdefault(record["row"], {}).setdefault(
                    record["sched"], []).append(cell(record["data"]))
    if not sizes:
        return "Not measured."
    rows = []
    for what, label in (("pipe_pinned", "pipe round trip, one CPU"),
                        ("pipe_free", "pipe round trip, free"),
                        ("hackbench", "hackbench, a message")):
        for sched in dict.fromkeys(s for size in sizes.values() for s in size.get(what, {})):
            cells = [median(size.get(what, {}).get(sched)) for size in sizes.values()]
            known = [cell for cell in cells if cell]
            flat = f"{max(known) / min(known):.2f}" if known else "-"
            rows.append([label, title(sched), *(f"{c:,.0f}" if c else "-" for c in cells), flat])
    return table(["instructions", "scheduler", *(f"{cpus} CPUs" for cpus in sizes), "most over least"], rows)


def median(values):
    return sorted(values)[len(values) // 2] if values else None


def verifier_table(path):
    kernels = {}
    for file in sorted(Path(path).glob("verifier-*.log")):
        text = file.read_text()
        kernel = re.search(r"^kernel (\S+) attached after (\d+) ms", text, re.M)
        counts = dict(re.findall(r"verified (\w+): (\d+) instructions", text))
        if kernel:
            kernels[f"Linux {kernel[1]}"] = (kernel[2], counts)
    if not kernels:
        return "Not measured."
    programs = sorted({name for _, counts in kernels.values() for name in counts})
    rows = [[name, *(counts.get(name, "-") for _, counts in kernels.values())] for name in programs]
    rows.append(["all", *(sum(map(int, counts.values())) for _, counts in kernels.values())])
    rows.append(["start to attached, ms", *(ms for ms, _ in kernels.values())])
    return table(["instructions verified", *kernels], rows)


PAGE = """# Loads

Generated by `scripts/bench-loads` {made}; not edited by hand. {kernel} in QEMU, virtual time (see
[measuring.md](measuring.md)), a run of some seconds each. What `scx_powerpack bench` can measure is in the pages of its suites.

## Hard loads

What each takes, what all CPUs that are used (above {used:g} %) are non-idle, and how many these are;
of periodic tasks the overruns and the longest response.

{hard}

In virtual time the CPUs share the instructions: a second of several busy ones does not get more
done than a second of one. What more CPUs gain does not show here, only what it costs.

## Throughput at saturation

Work done of that under EEVDF, in pairs: twice as many hogs as CPUs, `hackbench -g 2 -l 400`, a
compilation of C files, two for each CPU at a time. Two CPUs emulated in parallel; median ± its error
(least..most).

{throughput}

## Cost by the number of CPUs

Guest instructions, median; a machine has 75 minutes of the host's time, and "-" is what it
did not come to.

{cost}

## Loading

{verifier}
"""


def main():
    made, results = sys.argv[1:]
    hard = Path(results) / "hard.json"
    print(PAGE.format(
        made=made, kernel=f"Linux {read([hard])[0]}", used=USED_PCT, hard=hard_table(hard),
        throughput=throughput_table(Path(results) / "throughput.json"),
        cost=cost_table(results), verifier=verifier_table(results)), end="")


if __name__ == "__main__":
    main()
