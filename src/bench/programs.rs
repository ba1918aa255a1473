//! Programs that people measure schedulers with, and what they print.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::metric::Metric;

/// What was measured by the program itself.
pub type Figures = BTreeMap<Metric, f64>;

/// A command that runs as long as a load does.
#[derive(Clone, Debug)]
pub struct Beside {
    pub command: Vec<String>,
    /// The cgroup in which it runs; `None`: that of this program.
    pub cgroup: Option<String>,
}

/// Reads the figures in what a program prints.
type ReadFigures = fn(&str) -> Option<Figures>;

/// A command; one whose figures are not known is timed.
#[derive(Clone, Debug)]
pub struct Program {
    pub command: Vec<String>,
    read: Option<ReadFigures>,
}

/// By name, how what they print is read, and about how long they take if their
/// arguments do not say (s).
type Known = (&'static str, ReadFigures);
const KNOWN: [Known; 10] = [
    ("hackbench", hackbench),
    ("cyclictest", cyclictest),
    ("stress-ng", stress_ng),
    ("schbench", schbench),
    ("rt-app", rt_app),
    ("powerpack-load", powerpack_load),
    ("sysbench", sysbench),
    ("wrk", wrk),
    ("pgbench", pgbench),
    ("tbench", tbench),
];
const GUESS_S: f64 = 10.0;

impl Beside {
    /// Fails if that is no command.
    pub fn parse(command: &str, cgroup: Option<&str>) -> Result<Self> {
        let command = shell_words::split(command).context("beside")?;
        Ok(Beside { command, cgroup: cgroup.map(str::to_owned) })
    }
}

impl Program {
    /// Fails if that is no command.
    pub fn parse(command: &str) -> Result<Self> {
        let words = shell_words::split(command).context("program")?;
        let first = words.first().context("`program` is empty")?;
        let name = Path::new(first)
            .file_name()
            .map_or(first.as_str(), |name| name.to_str().unwrap_or(first));
        let read = KNOWN.iter().find(|(known, _)| *known == name).map(|(_, read)| *read);
        Ok(Program { command: words, read })
    }

    /// As it is called.
    pub fn name(&self) -> &str {
        &self.command[0]
    }

    /// About how long it takes (s); only for showing progress.
    pub fn guess_s(&self) -> f64 {
        let number = |word: &String| word.trim_end_matches('s').parse::<f64>().ok();
        let after = |flags: &[&str]| {
            let at = self.command.iter().position(|word| flags.contains(&word.as_str()))?;
            self.command.get(at + 1).and_then(number)
        };
        after(&["-D", "--timeout", "-r"]).unwrap_or(GUESS_S)
    }

    /// What rt-app has logged of each thread, where its file says: it prints nothing of it.
    fn rt_app_logs(&self) -> Result<String> {
        let file = self.command.last().map_or("", String::as_str);
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        let spec: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("in {file}"))?;
        let global = &spec["global"];
        let Some(dir) = global["logdir"].as_str() else {
            bail!("{file} has no \"logdir\" in \"global\": rt-app logs its times there");
        };
        let name = global["log_basename"].as_str().unwrap_or("rt-app");
        let logs = glob::glob(&format!("{dir}/{name}-*.log"))?.flatten();
        let texts: Vec<String> = logs.filter_map(|log| fs::read_to_string(log).ok()).collect();
        Ok(texts.concat())
    }

    /// Its figures, of a run that took `elapsed_s`. Fails when it printed none.
    pub fn figures(&self, output: &str, elapsed_s: f64) -> Result<Figures> {
        let Some(read) = self.read else {
            return Ok(Figures::from([(Metric::ElapsedS, elapsed_s)]));
        };
        let is_rt_app = Path::new(self.name()).ends_with("rt-app");
        let logs = if is_rt_app { Some(self.rt_app_logs()?) } else { None };
        let figures = read(logs.as_deref().unwrap_or(output));
        let last = output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
        ensure!(figures.is_some(), "no figures in what {} printed: {last}", self.name());
        Ok(figures.unwrap_or_default())
    }
}

/// Whether a program of that name, or at that path, can be run here.
pub fn is_installed(name: &str) -> bool {
    let name = Path::new(name);
    if name.components().count() > 1 {
        return name.exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    !name.as_os_str().is_empty() && env::split_paths(&path).any(|dir| dir.join(name).exists())
}

/// The number after `label`.
fn after(text: &str, label: &str) -> Option<f64> {
    let rest = &text[text.find(label)? + label.len()..];
    rest.split_whitespace().next()?.parse().ok()
}

/// "Time: 0.123"
fn hackbench(output: &str) -> Option<Figures> {
    Some(Figures::from([(Metric::ElapsedS, after(output, "Time:")?)]))
}

/// "T: 0 ( 123) P:0 I:1000 C: 100 Min: 5 Act: 7 Avg: 8 Max: 60", a line for each thread.
fn cyclictest(output: &str) -> Option<Figures> {
    let lines = output.lines().filter(|line| line.starts_with("T:"));
    let max = lines.filter_map(|line| after(line, "Max:")).reduce(f64::max)?;
    Some(Figures::from([(Metric::WakeMaxUs, max)]))
}

/// "stress-ng: metrc: [1] cpu 5943 5.00 9.98 0.00 1188.43 595.31": bogo operations, the
/// time, user and system time, then operations per second of the time; stressors follow
/// each other.
fn stress_ng(output: &str) -> Option<Figures> {
    let rate = |line: &str| {
        let words: Vec<&str> = line.split("] ").nth(1)?.split_whitespace().collect();
        let numbers: Option<Vec<f64>> =
            words.get(1..)?.iter().map(|word| word.parse().ok()).collect();
        numbers?.get(4).copied()
    };
    let lines = output.lines().filter(|line| line.contains("metrc:") || line.contains("info:"));
    let rates: Vec<f64> = lines.filter_map(rate).collect();
    (!rates.is_empty()).then(|| Figures::from([(Metric::RecordsPerS, rates.iter().sum())]))
}

/// "Wakeup Latencies percentiles (usec) ...", then "* 99.0th: 12 (34 samples)"; the last
/// such block counts.
fn schbench(output: &str) -> Option<Figures> {
    let block = &output[output.rfind("Wakeup Latencies").or_else(|| output.rfind("Latency"))?..];
    let labels = [
        ("50.0th:", Metric::WakeP50Us),
        ("99.0th:", Metric::WakeP99Us),
        ("99.9th:", Metric::WakeP999Us),
        ("max=", Metric::WakeMaxUs),
    ];
    let number = |label: &str| {
        let rest = &block[block.find(label)? + label.len()..];
        let digits = |c: char| !c.is_ascii_digit() && c != '.';
        rest.trim_start().split(digits).next()?.parse().ok()
    };
    let figures: Figures =
        labels.iter().filter_map(|&(label, metric)| Some((metric, number(label)?))).collect();
    (!figures.is_empty()).then_some(figures)
}

/// Its logs have a column of slack (us), of which what is negative is an overrun:
/// "#idx perf run period start end rel_st slack c_duration c_period wu_lat".
fn rt_app(output: &str) -> Option<Figures> {
    let heading = output.lines().find(|line| line.trim_start().starts_with("#idx"))?;
    let names: Vec<&str> = heading.split_whitespace().collect();
    let column = |name: &str| names.iter().position(|other| *other == name);
    let (slack, latency) = (column("slack")?, column("wu_lat")?);
    let rows = output.lines().filter(|line| !line.trim_start().starts_with('#'));
    let rows = rows.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words.get(slack)?.parse().ok()?, words.get(latency)?.parse().ok()?))
    });
    let rows: Vec<(f64, f64)> = rows.collect();
    let late = rows.iter().filter(|(slack, _)| *slack < 0.0).count();
    let longest = rows.iter().map(|(_, latency)| *latency).reduce(f64::max)?;
    let overruns_pct = 100.0 * late as f64 / rows.len() as f64;
    Some(Figures::from([(Metric::OverrunsPct, overruns_pct), (Metric::WakeMaxUs, longest)]))
}

/// Its `pipe`: "{"rounds":2000,"ns_per_round":14750.5}"; its `audio`:
/// "{"periods":1875,"xruns":2,"response":{"p99_us":1100.5,"max_us":5400.1,..}}".
fn powerpack_load(output: &str) -> Option<Figures> {
    let report: serde_json::Value = serde_json::from_str(output).ok()?;
    let Some(xruns) = report["xruns"].as_f64() else {
        return Some(Figures::from([(Metric::RoundTripNs, report["ns_per_round"].as_f64()?)]));
    };
    let response = &report["response"];
    Some(Figures::from([
        (Metric::OverrunsPct, 100.0 * xruns / report["periods"].as_f64()?),
        (Metric::ResponseP99Us, response["p99_us"].as_f64()?),
        (Metric::ResponseMaxUs, response["max_us"].as_f64()?),
    ]))
}

/// "total time: 3.3838s", "99th percentile: 13.95" (ms; with `--percentile=99`).
fn sysbench(output: &str) -> Option<Figures> {
    let elapsed_s = output.split("total time:").nth(1)?.trim_start().split('s').next()?;
    let mut figures = Figures::from([(Metric::ElapsedS, elapsed_s.parse().ok()?)]);
    figures.extend(after(output, "99th percentile:").map(|ms| (Metric::ResponseP99Us, 1e3 * ms)));
    Some(figures)
}

/// "Requests/sec: 1234.56"; with `--latency` "99% 1.23ms".
fn wrk(output: &str) -> Option<Figures> {
    let mut figures = Figures::from([(Metric::RecordsPerS, after(output, "Requests/sec:")?)]);
    let p99 = output.split("99%").nth(1).and_then(|rest| rest.split_whitespace().next());
    figures.extend(p99.and_then(us_of).map(|us| (Metric::ResponseP99Us, us)));
    Some(figures)
}

/// A time as wrk prints it: "950.00us", "1.23ms" or "1.01s".
fn us_of(text: &str) -> Option<f64> {
    let number = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit_us = match &text[number.len()..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return None,
    };
    Some(unit_us * number.parse::<f64>().ok()?)
}

/// "tps = 1234.5 (without initial connection time)"
fn pgbench(output: &str) -> Option<Figures> {
    Some(Figures::from([(Metric::RecordsPerS, after(output, "tps =")?)]))
}

/// "Throughput 123.4 MB/sec  4 clients  4 procs  max_latency=1.234 ms": a record is a MB.
fn tbench(output: &str) -> Option<Figures> {
    Some(Figures::from([(Metric::RecordsPerS, after(output, "Throughput")?)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(command: &str, output: &str) -> Figures {
        Program::parse(command).unwrap().figures(output, 9.0).unwrap()
    }

    /// As printed by the versions of Debian 12 and 13.
    #[test]
    fn what_programs_print_is_read() {
        let hackbench = read("hackbench -g 2", "Running in process mode\nTime: 0.235\n");
        assert_eq!(hackbench[&Metric::ElapsedS], 0.235);
        let pipe = read("powerpack-load pipe", "{\"rounds\":2,\"ns_per_round\":14750.5}\n");
        assert_eq!(pipe[&Metric::RoundTripNs], 14750.5);
        let text =
            "{\"periods\":200,\"xruns\":2,\"response\":{\"p99_us\":1100.5,\"max_us\":5400.0}}\n";
        assert_eq!(read("powerpack-load audio", text)[&Metric::OverrunsPct], 1.0);
        assert_eq!(read("gzip -1", "")[&Metric::ElapsedS], 9.0);
        let text = "# /dev/cpu_dma_latency set to 0us\n\
            T: 0 ( 4523) P: 0 I:1000 C:   2000 Min:      6 Act:   61 Avg:   60 Max:     178\n\
            T: 1 ( 4524) P: 0 I:1500 C:   1333 Min:      5 Act:   58 Avg:   61 Max:     901\n";
        assert_eq!(read("cyclictest -q", text)[&Metric::WakeMaxUs], 901.0);
        let text = "stress-ng: info:  [9] dispatching hogs: 2 cpu\n\
            stress-ng: metrc: [9] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s\n\
            stress-ng: metrc: [9]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)\n\
            stress-ng: metrc: [9] cpu                4131      5.00      9.98      0.00       825.93         413.93\n";
        assert_eq!(read("stress-ng --cpu 2", text)[&Metric::RecordsPerS], 825.93);
        let text = "Wakeup Latencies percentiles (usec) runtime 10 (s) (9 total samples)\n\
            \t  50.0th: 8          (1 samples)\n\t* 99.0th: 95         (1 samples)\n\
            \t  99.9th: 1234       (1 samples)\n\t  min=1, max=4025\n";
        let figures = read("schbench -m 2", text);
        assert_eq!((figures[&Metric::WakeP99Us], figures[&Metric::WakeMaxUs]), (95.0, 4025.0));
    }

    /// As printed by the versions of Debian 12.
    #[test]
    fn what_servers_clients_print_is_read() {
        let text = "    total time:                          3.3838s\n\
            Latency (ms):\n         99th percentile:                       13.95\n";
        let figures = read("sysbench threads run", text);
        assert_eq!(
            (figures[&Metric::ElapsedS], figures[&Metric::ResponseP99Us]),
            (3.3838, 13950.0)
        );
        let text = "  Latency Distribution\n     50%  512.00us\n     99%    1.25ms\n\
            Requests/sec:   9876.50\nTransfer/sec:      7.80MB\n";
        let figures = read("wrk -c 8", text);
        assert_eq!(
            (figures[&Metric::RecordsPerS], figures[&Metric::ResponseP99Us]),
            (9876.5, 1250.0)
        );
        let text = "latency average = 3.2 ms\ninitial connection time = 9.1 ms\n\
            tps = 1234.5 (without initial connection time)\n";
        assert_eq!(read("pgbench -c 8", text)[&Metric::RecordsPerS], 1234.5);
        let text = "Throughput 12.5 MB/sec  4 clients  4 procs  max_latency=9.034 ms\n";
        assert_eq!(read("tbench 4", text)[&Metric::RecordsPerS], 12.5);
        assert_eq!((us_of("1.5s"), us_of("3.0m")), (Some(1.5e6), None));
    }

    #[test]
    fn what_rt_app_logs_is_found_where_its_file_says() {
        let dir = env::temp_dir().join(format!("rt-app-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join("a.json");
        let program = Program::parse(&format!("rt-app {}", file.display())).unwrap();
        fs::write(&file, "{\"global\": {}}").unwrap();
        assert!(program.figures("", 9.0).unwrap_err().to_string().contains("has no \"logdir\""));
        fs::write(&file, format!("{{\"global\": {{\"logdir\": {:?}}}}}", dir)).unwrap();
        let log = "# Policy : SCHED_OTHER priority : 0\n\
            #idx perf run period start end rel_st slack c_duration c_period wu_lat\n\
            0 1 9000 10000 1 2 3 950 9000 10000 61\n0 1 9000 10000 1 2 3 -20 9000 10000 80\n";
        fs::write(dir.join("rt-app-a-0.log"), log).unwrap();
        fs::write(dir.join("rt-app-b-0.log"), log).unwrap();
        let figures = program.figures("", 9.0).unwrap();
        assert_eq!((figures[&Metric::OverrunsPct], figures[&Metric::WakeMaxUs]), (50.0, 80.0));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_program_that_prints_nothing_useful_is_reported() {
        let program = Program::parse("hackbench -g 2").unwrap();
        let text = program.figures("hackbench: cannot fork\n", 9.0).unwrap_err().to_string();
        assert_eq!(text, "no figures in what hackbench printed: hackbench: cannot fork");
        assert!(!is_installed("/nonexistent/hackbench") && is_installed("sh"));
        assert_eq!(Program::parse("cyclictest -D 7").unwrap().guess_s(), 7.0);
    }
}
