"""What scripts/measure-reality runs, and what it writes.

reality.py commands MACHINE WORKLOAD:SECONDS..   a line for each: a name, then the
                                                 arguments of powerpack-load
reality.py results FILE..                        sim/reality.toml
"""

import json
import sys
from pathlib import Path


def command(machine, workload, seconds, settle=0):
    name = f"{machine}:{workload}:{seconds}"
    return f"{name} workload --seconds {int(seconds) + settle} --settle {settle} {workload}"


def toml_run(run):
    machine, workload, seconds = run["name"].split(":")
    result = run["result"]
    cpus = ", ".join(f"{pct:.2f}" for pct in result["non_idle_pct"])
    return f"""
[[run]]
machine = "{machine}"
workload = "{workload}"
mode = "{run['sched']}"
seconds = {float(seconds)}
non_idle_pct = [{cpus}]
overruns = {result['overruns']}
longest_ms = {result['response']['max_us'] / 1e3:.2f}"""


def main():
    what, *rest = sys.argv[1:]
    if what == "commands":
        machine, *loads = rest
        for load in loads:
            workload, seconds = load.split(":")
            print(command(machine, workload, seconds))
        return
    print("# Measured by scripts/measure-reality: Linux 7.2 in QEMU, virtual time.")
    for path in rest:
        for line in Path(path).read_text().splitlines():
            run = json.loads(line)
            if run["name"] != "kernel" and "result" in run:
                print(toml_run(run))


if __name__ == "__main__":
    main()
