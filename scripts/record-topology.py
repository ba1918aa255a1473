#!/usr/bin/env python3
"""record-topology.py [ROOT]: this machine's CPUs, or those of a recorded tree, as text.

What scx_powerpack reads of a machine, as a fixture for tests/topologies/: lines PATH=VALUE for the
whole machine, then a table with a row for each CPU, a column for each file below cpuN. Files that are
not there are "-". Send it to the project if your CPUs are ranked badly.
"""

import sys
from pathlib import Path

CPUS = "sys/devices/system/cpu"
GLOBAL = [f"{CPUS}/{name}" for name in ("possible", "online", "isolated", "nohz_full", "smt/active")]
COLUMNS = [
    "topology/physical_package_id", "topology/core_id", "topology/cluster_id",
    "cache/index2/id", "cache/index2/shared_cpu_list", "cache/index3/id",
    "cache/index3/shared_cpu_list", "cpu_capacity", "acpi_cppc/highest_perf",
    "cpufreq/amd_pstate_prefcore_ranking", "cpufreq/cpuinfo_max_freq",
]
# Kernels before 5.16 do not report clusters; those that can run us do, as this if there are none.
DEFAULTS = {"topology/cluster_id": "65535"}


def value(path):
    try:
        return path.read_text().replace("\0", "").strip()
    except OSError:
        return ""


def number(path):
    digits = path.name.lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) if digits.isdigit() else -1


def cpus_of(node):
    linked = [number(cpu) for cpu in node.glob("cpu[0-9]*")]
    mask = int(value(node / "cpumap").replace(",", "") or "0", 16)
    return linked or [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "/")
    for name in GLOBAL:
        text = value(root / name)
        if text:
            print(f"{name}={text}")
    nodes = sorted((root / "sys/devices/system/node").glob("node[0-9]*"), key=number)
    node_of = {}
    for node in nodes:
        for cpu in cpus_of(node):
            node_of[cpu] = number(node)
    cpus = sorted((p for p in (root / CPUS).glob("cpu[0-9]*") if number(p) >= 0), key=number)
    rows = []
    for cpu in cpus:
        cells = [value(cpu / column) or "-" for column in COLUMNS]
        known = cells[0] != "-"
        cells = [DEFAULTS.get(column, "-") if cell == "-" and known else cell
                 for column, cell in zip(COLUMNS, cells)]
        rows.append([cpu.name, str(node_of.get(number(cpu), "-")), *cells])
    used = [i for i in range(len(COLUMNS) + 2) if i < 5 or any(row[i] != "-" for row in rows)]
    for row in [["cpu", "node", *COLUMNS], *rows]:
        print("\t".join(row[i] for i in used))


if __name__ == "__main__":
    main()
