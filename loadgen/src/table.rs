//! The reports as a person reads them.

use std::fmt::Write;

use powerpack_load::samples::Summary;
use powerpack_load::schedstat::NonIdle;
use powerpack_load::{audio, hogs, pipe, record};

/// A report that can be shown as text, several lines with or without an end.
pub trait Table {
    fn table(&self) -> String;
}

/// Appends a line; writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => { let _ = writeln!($text, $($arg)*); };
}

impl Table for NonIdle {
    fn table(&self) -> String {
        let mut text = String::new();
        for (cpu, pct) in self.non_idle_pct.iter().enumerate() {
            let bar = "#".repeat((pct / 2.5).round().max(0.0) as usize);
            line!(text, "CPU {cpu:<3} {pct:6.2} % {bar}");
        }
        line!(text, "beyond the CPUs that the load needs: {:.2} %", self.surplus_non_idle_pct);
        text
    }
}

impl Table for Option<NonIdle> {
    fn table(&self) -> String {
        let unknown = || "non-idle: not known, this kernel has no /proc/schedstat\n".into();
        self.as_ref().map_or_else(unknown, Table::table)
    }
}

fn task_line(name: &str, counts: [usize; 3], response: &Summary, wake: &Summary) -> String {
    let [threads, activations, overruns] = counts;
    format!(
        "{name:<10} {threads:>7} {activations:>11} {overruns:>8} {:>10.0} {:>10.0} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
        response.mean_us, response.max_us, wake.mean_us, wake.p50_us, wake.p99_us, wake.max_us
    )
}

impl Table for record::Report {
    fn table(&self) -> String {
        let mut text = String::from(
            "                                           response (us)        wake-up latency (us)\n\
             task       threads activations overruns       mean        max      mean       p50       p99       max\n",
        );
        for task in &self.tasks {
            let counts = [task.threads, task.activations, task.overruns];
            line!(text, "{}", task_line(&task.task, counts, &task.response, &task.wake_latency));
        }
        let threads = self.tasks.iter().map(|task| task.threads).sum();
        let counts = [threads, self.activations, self.overruns];
        line!(text, "{}", task_line("all", counts, &self.response, &self.wake_latency));
        line!(text, "longest delay beyond a task's own run time: {:.0} us\n", self.max_delay_us);
        text + &self.non_idle.table()
    }
}

impl Table for hogs::Report {
    fn table(&self) -> String {
        let mut text = String::from("hog        work  CPU time (s)\n");
        for (hog, (work, cpu_s)) in self.work.iter().zip(&self.cpu_s).enumerate() {
            line!(text, "{hog:<3} {work:>11} {cpu_s:>13.3}");
        }
        line!(text, "all {:>11} {:>13.3}\n", self.total_work, self.cpu_s.iter().sum::<f64>());
        text + &self.non_idle.table()
    }
}

impl Table for audio::Report {
    fn table(&self) -> String {
        let Self { periods, xruns, response } = self;
        format!(
            "{xruns} xruns in {periods} periods; done after {:.0} us, at most {:.0}",
            response.p50_us, response.max_us
        )
    }
}

impl Table for pipe::Report {
    fn table(&self) -> String {
        format!("{:.0} ns per round trip ({} of them)", self.ns_per_round, self.rounds)
    }
}
