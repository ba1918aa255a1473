//! `scx_powerpack calibrate`: what an idle machine's power says of each of its parts, as a machine file
//! for the simulator and for mode `energy`.

mod file;
mod fit;
mod least_squares;
mod load;
mod model;
mod observe;
mod plan;
mod subject;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use comfy_table::presets::ASCII_MARKDOWN;
use indicatif::{ProgressBar, ProgressStyle};
use log::info;
use powerpack_load::schedstat::Reading;
use powerpack_sim::Machine;

use crate::cli::CalibrateArgs;
use crate::machine::borrowed::{Borrowed, CALIBRATION};
use crate::machine::power_meter::PowerMeter;
use crate::machine::topology::Ranks;
use crate::machine::{calibrated, kernel, whole_file};
use crate::settings::hints;
use crate::signals::{EXIT_INTERRUPTED, Interrupted, hear_signals};
use file::About;
use model::{Model, Seen};
use observe::Observer;
use plan::Block;
use subject::Subject;

/// The machine is idle if all that runs uses at most this much of one CPU (%).
const IDLE_MAX_PCT: f64 = 10.0;
/// For so long it is looked.
const IDLE_LOOK: Duration = Duration::from_secs(2);
/// A block of busy CPUs lasts for this many steps of the meter, so that one more or less is a small error, and
const BLOCK_STEPS: u32 = 5;
/// at least and at most this long: one millisecond of RAPL's is 0.05 % of the former.
const BLOCK_MIN: Duration = Duration::from_secs(2);
const BLOCK_MAX: Duration = Duration::from_secs(60);
/// After a change the machine is left alone for this time at least, and for a step of the meter.
const SETTLE_MIN: Duration = Duration::from_millis(300);
/// A model that is off by more than this share of what a block took says nothing of the machine.
const WORST_SHARE_MAX: f64 = 0.5;
/// No meter that is of use has longer steps.
const METER_STEP_MAX: Duration = Duration::from_secs(30);

/// Measures, prints, and writes the file. Fails with a sentence; whatever it has set is put back.
pub fn run(args: &CalibrateArgs) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let path = args.out.clone().unwrap_or_else(|| calibrated::FILE.into());
    match calibrate(&stop, &path) {
        Err(err) if err.is::<Interrupted>() => {
            eprintln!("scx_powerpack: interrupted: nothing is written, and all is as it was");
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}

fn calibrate(stop: &Arc<AtomicBool>, path: &Path) -> Result<()> {
    kernel::check_root("measuring power")?;
    if let Some(name) = kernel::loaded_scheduler() {
        bail!(
            "a sched_ext scheduler is loaded, {name}: stop it first, as it would be measured too"
        );
    }
    let root = hints::root();
    let mut meter = PowerMeter::begin(&root);
    check_meter(&meter)?;
    let settings = Borrowed::begin(CALIBRATION, Path::new("/"))?;
    let stopped = Arc::clone(stop);
    hear_signals(move |_| stopped.store(true, Ordering::Relaxed))?;
    check_idle()?;
    let loads_before = kernel::enable_seq();
    // Read after what a killed predecessor left is put back.
    let subject = Subject::read(&Ranks::read()?, &root)?;
    let step = meter.step(METER_STEP_MAX);
    let length = (step * BLOCK_STEPS).clamp(BLOCK_MIN, BLOCK_MAX);
    let settle = step.max(SETTLE_MIN);
    let title = meter.title();
    let observer = Observer { subject: &subject, settings, meter, stop, settle, length };
    let seen = measure(observer)?;
    ensure!(
        kernel::enable_seq() == loads_before,
        "a sched_ext scheduler was loaded meanwhile, and was measured too: begin again"
    );
    let model = model::find(&subject, &seen)?;
    refuse_contradiction(model.worst_share)?;
    let about = About { lines: lines(&subject, &model, seen.len(), length, title), seen: &seen };
    let text = file::text(&subject, &model, &about);
    Machine::parse(&text).context("what was measured makes no machine")?;
    write(path, &text)?;
    print(&subject, &model, path);
    Ok(())
}

/// Fails with a sentence if nothing measures power.
fn check_meter(meter: &PowerMeter) -> Result<()> {
    meter.missing().map_or(Ok(()), |why| bail!("nothing here measures power: {why}"))
}

/// Fails with a sentence if more runs than on an idle machine.
fn check_idle() -> Result<()> {
    let before = Reading::now()?;
    thread::sleep(IDLE_LOOK);
    let pct = before.non_idle_until(&Reading::now()?).non_idle_pct.iter().sum();
    refuse_busy(pct)
}

fn refuse_busy(pct: f64) -> Result<()> {
    ensure!(
        pct <= IDLE_MAX_PCT,
        "this machine is not idle: what runs uses {pct:.0} % of a CPU, and {IDLE_MAX_PCT:.0} % is the \
         most that leaves power to be measured; end it, and begin again"
    );
    Ok(())
}

/// Fails with a sentence if a block took something else than all blocks together say.
fn refuse_contradiction(worst_share: f64) -> Result<()> {
    ensure!(
        worst_share <= WORST_SHARE_MAX,
        "what was measured contradicts itself: a block took {:.0} % more or less than the others say; nothing \
         is written, begin again",
        worst_share * 100.0
    );
    Ok(())
}

/// All blocks; drops the observer, which puts back what was set.
fn measure(mut observer: Observer<'_>) -> Result<Vec<(Block, Seen)>> {
    let blocks = plan::blocks(observer.subject);
    let (settle, length) = (observer.settle, observer.length);
    let duration = |block: &Block| (settle + block.length(length)).as_millis() as u64;
    let all_ms: u64 = blocks.iter().map(duration).sum();
    info!(
        "{} blocks: about {:.0} s in which this machine is to be left alone",
        blocks.len(),
        all_ms as f64 / 1e3
    );
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} % {eta} left  {msg}");
    let bar = ProgressBar::new(all_ms).with_style(style.expect("a template of its own words"));
    let mut all = vec![];
    for block in blocks {
        bar.set_message(block.what.clone());
        let seen = observer.measure(&block)?;
        // On a terminal the bar says it.
        if bar.is_hidden() {
            info!("{}: {:.1} mW", block.what, seen.power_mw);
        }
        bar.inc(duration(&block));
        all.push((block, seen));
    }
    bar.finish_and_clear();
    Ok(all)
}

/// What the file says of its making.
fn lines(
    subject: &Subject,
    model: &Model,
    nr: usize,
    length: Duration,
    meter: &str,
) -> Vec<String> {
    let mut lines = vec![
        format!(
            "Measured by scx_powerpack calibrate {} on {}:",
            env!("CARGO_PKG_VERSION"),
            jiff::Zoned::now().strftime("%Y-%m-%d")
        ),
        format!("{nr} blocks of {:.1} s and more, by {meter}.", length.as_secs_f64()),
        format!(
            "+- is the standard error of a figure; what is least well explained is a block that took \
             {:.1} % more or less.",
            model.worst_share * 100.0
        ),
    ];
    if subject.kinds.iter().all(|kind| kind.khz.is_empty()) {
        lines.push("This kernel has no cpufreq here: all of it is at one frequency.".into());
    }
    lines
}

fn write(path: &Path, text: &str) -> Result<()> {
    let say = || format!("cannot write {}", path.display());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).with_context(say)?;
    }
    whole_file::write(path, text.as_bytes()).with_context(say)
}

fn print(subject: &Subject, model: &Model, path: &Path) {
    let mut table = comfy_table::Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["figure", "value", "+-"]);
    for row in file::rows(subject, model) {
        table.add_row(row);
    }
    println!("{table}\n\nBeyond what the idle machine takes. {}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_refused_with_the_figure() {
        assert!(refuse_busy(9.9).is_ok());
        let said = refuse_busy(37.4).unwrap_err().to_string();
        assert!(
            said.starts_with("this machine is not idle: what runs uses 37 % of a CPU"),
            "{said}"
        );
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_the_figure() {
        assert!(refuse_contradiction(0.5).is_ok());
        let said = refuse_contradiction(0.73).unwrap_err().to_string();
        assert!(said.contains("took 73 % more or less"), "{said}");
        assert!(refuse_contradiction(f64::NAN).is_err());
    }

    #[test]
    fn a_machine_without_a_meter_is_refused() {
        let said = check_meter(&PowerMeter::begin(Path::new("/nowhere"))).unwrap_err().to_string();
        assert!(said.starts_with("nothing here measures power: no RAPL counters"), "{said}");
    }

    #[test]
    fn a_file_is_written_whole() {
        let dir = std::env::temp_dir().join(format!("calibrate-file-{}", std::process::id()));
        let path = dir.join("below/machine.toml");
        write(&path, "name = 1").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "name = 1");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }
}
