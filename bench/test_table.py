"""The verdicts: each test shows one that could come out wrong."""

import json
import unittest

import table


def results(*entries):
    return table.Results(
        json.dumps({"run": 1, "sched": sched, "row": row, "data": data})
        for sched, row, data in entries
    )


def verdict(title, *entries):
    row = next(row for row in table.ROWS if row.title.startswith(title))
    return row.verdict(results(*entries))


class Verdicts(unittest.TestCase):
    def test_the_median_counts_not_the_best(self):
        runs = [("packing", "light", {"surplus_non_idle_pct": pct}) for pct in (0.0, 0.2, 0.3)]
        self.assertEqual(verdict("light load: non-idle", *runs), table.MISSED)
        self.assertEqual(verdict("light load: non-idle", *runs[:1]), table.MET)

    def test_both_modes_must_hold(self):
        runs = [("eevdf", "pipe_free", {"ns_per_round": 100})]
        runs += [("packing", "pipe_free", {"ns_per_round": 90})]
        self.assertEqual(verdict("pipe round trip free", *runs), table.UNKNOWN)
        runs += [("spread", "pipe_free", {"ns_per_round": 111})]
        self.assertEqual(verdict("pipe round trip free", *runs), "**missed** (0.90 x, 1.11 x)")

    def test_a_run_of_hogs_is_compared_with_its_neighbours(self):
        work = [("eevdf", 100), ("packing", 99), ("eevdf", 120), ("spread", 60), ("eevdf", 120)]
        hogs = [(sched, {"total_work": total}) for sched, total in work]
        self.assertEqual(table.paired_ratios(hogs, "packing"), [0.9])
        self.assertEqual(table.paired_ratios(hogs, "spread"), [0.5])

    def test_noise_is_not_taken_for_a_verdict(self):
        judge = table.at_least(0.99, "packing")
        noisy, clear = [0.90, 0.995, 1.10], [0.970, 0.971, 0.972]
        self.assertEqual(judge({"packing": 0.995}, lambda _: noisy), table.UNDECIDED)
        self.assertEqual(judge({"packing": 0.971}, lambda _: clear), table.MISSED)

    def test_a_difference_within_the_noise_is_no_miss(self):
        judge = table.at_most_times(1, "eevdf", "spread")
        runs = {"eevdf": [14.4, 15.0, 15.8], "spread": [14.7, 15.1, 15.5]}
        verdict = judge({"eevdf": 15.0, "spread": 15.1}, runs.get)
        self.assertEqual(verdict, "undecided (1.01 x)")
        verdict = judge({"eevdf": 15.0, "spread": 18.0}, runs.get)
        self.assertEqual(verdict, "**missed** (1.20 x)")

    def test_surplus_cpus_that_never_rest_miss(self):
        switch = {"command_output": "packing (switched in 31 us)", "drained_ms": None}
        self.assertEqual(verdict("mode switch: surplus", ("packing", "switch", switch)), table.MISSED)
        self.assertEqual(verdict("mode switch: policy", ("packing", "switch", switch)), table.MET)

    def test_a_scheduler_that_does_not_start_is_named(self):
        text = table.text(results(("lavd", "failed", "ended while loading: no BTF")))
        self.assertIn("scx_lavd --powersave, run 1: ended while loading: no BTF", text)


if __name__ == "__main__":
    unittest.main()
