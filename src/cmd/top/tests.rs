//! Screens at several sizes, of machines of several sizes, and what the keys do.

pub mod made_up;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::cpu_states::CpuState;
use super::keys::{Action, pressed};
use super::model::Model;
use super::view;
use crate::control::protocol::Request;
use crate::settings::policy::{Choice, MaxCores, Mode, PolicyArgs};
use made_up::sample;

/// After two looks.
fn model(cpus: usize) -> Model {
    let mut model = Model::new(false, true);
    model.learn(Ok(sample(cpus, 10)));
    model.learn(Ok(sample(cpus, 11)));
    model
}

fn terminal(model: &mut Model, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, model)).unwrap();
    terminal
}

/// The lines of the screen.
fn screen(model: &mut Model, width: u16, height: u16) -> Vec<String> {
    let terminal = terminal(model, width, height);
    let cells = terminal.backend().buffer().content();
    let text = |row: &[ratatui::buffer::Cell]| row.iter().map(|cell| cell.symbol()).collect();
    cells
        .chunks(width.into())
        .map(|row| {
            let text: String = text(row);
            text.trim_end().to_owned()
        })
        .collect()
}

fn press(model: &mut Model, code: KeyCode) -> Action {
    pressed(model, KeyEvent::new(code, KeyModifiers::NONE))
}

fn key(model: &mut Model, key: char) -> Action {
    press(model, KeyCode::Char(key))
}

#[test]
fn four_cpus_at_80x24() {
    let mut model = model(4);
    let bar = "█".repeat(31);
    let expected = format!("*┌   0 {bar}{:>37}   w3", "50 %");
    let lines = screen(&mut model, 80, 24);
    assert!(lines[0].starts_with("scx_powerpack 0.1.0  packing  "));
    assert!(lines[0].ends_with("  up 11 s"));
    assert_eq!(
        lines[1],
        "CPUs: 1 of 3 active, demand 0.50  ceiling all cores  fill 80 %  budget 5 ms"
    );
    assert!(lines[2].starts_with("per s: spills 7.0  migrations 0  queued 0  preempts 0"));
    assert_eq!(lines[3], "wake-up p50 <= 16 us  p99 <= 64 us  max <= 64 us  - W  - MHz  C-state -");
    assert_eq!(lines[5], "package 0 LLC 0");
    assert_eq!(lines[6], expected);
    assert_eq!(lines[8], " ┌   1 offline");
    assert!(lines[9].starts_with(" └   3 ██████") && lines[9].ends_with("10 %"));
    assert!(lines[10].contains("busiest tasks, by utilization"));
    assert_eq!(lines[11], "   1000     1000  *   0    98 %  task-0");
    assert!(lines[23].starts_with("q quit  ? help"));
}

#[test]
fn a_large_machine_is_seen_at_a_glance() {
    let mut model = model(256);
    let lines = screen(&mut model, 80, 24);
    assert!(lines[4].ends_with("PgDn bars"));
    assert_eq!(lines[5], format!("p0 L0   w3 ▅▁{}", " ▁▁".repeat(15)));
    assert_eq!(lines[7], format!("p1 L2   w4 {}··", "·· ".repeat(15)));
    assert_eq!(lines[12], format!("p3 L7  w14 {}xo", "·· ".repeat(15)));
    assert!(lines[13].contains("busiest tasks"));
    // The bars are pages behind it.
    press(&mut model, KeyCode::PageDown);
    let lines = screen(&mut model, 80, 24);
    assert!(lines[4].starts_with("CPUs, page 1 of "), "{}", lines[4]);
    assert!(lines[6].starts_with("*┌   0 "), "{}", lines[6]);
    (0..99).for_each(|_| assert_eq!(press(&mut model, KeyCode::PageDown), Action::None));
    let lines = screen(&mut model, 80, 24);
    // Not the number of CPUs in the header.
    let shows_last = |lines: &[String]| lines[5..].iter().any(|line| line.contains(" 255 "));
    assert!(shows_last(&lines), "the last page");
    press(&mut model, KeyCode::PageUp);
    assert!(!shows_last(&screen(&mut model, 80, 24)));
}

#[test]
fn what_does_not_fit_into_the_header_is_cut_visibly() {
    let lines = screen(&mut model(4), 40, 24);
    for (nth, begin) in [(1, "CPUs: 1 of 3 active"), (2, "per s: spills"), (3, "wake-up p50")] {
        assert!(lines[nth].starts_with(begin) && lines[nth].ends_with('…'), "{}", lines[nth]);
        assert_eq!(lines[nth].chars().count(), 40);
    }
}

#[test]
fn an_isolated_cpu_is_neither_active_nor_surplus() {
    for (cpus, shown) in [(4, "i└"), (256, "p0 L0   w3 ▅i ▁▁")] {
        let mut model = model(cpus);
        let mut isolated = sample(cpus, 12);
        let cpu = &mut isolated.status.cpus[1];
        (cpu.active, cpu.isolated, cpu.online) = (false, true, true);
        model.learn(Ok(isolated));
        let lines = screen(&mut model, 80, 24);
        assert!(lines[1].contains(&format!(" of {} active", cpus - 2)), "{}", lines[1]);
        assert!(lines.iter().any(|line| line.starts_with(shown)), "{lines:?}");
    }
}

#[test]
fn the_largest_machine_is_seen_at_a_glance() {
    let lines = screen(&mut model(1024), 80, 24);
    let map = lines[5..19].concat();
    assert_eq!(map.split('|').count(), 32);
    assert_eq!(map.chars().filter(|&cell| cell != '|').count(), 1024);
    assert!(lines[19].contains("busiest tasks"));
}

#[test]
fn a_large_screen_has_bars_for_a_large_machine() {
    let mut model = model(256);
    let lines = screen(&mut model, 200, 50);
    let text = lines.join("\n");
    assert!((0..256).all(|cpu| text.contains(&format!(" {cpu} "))), "some CPU is not there");
    assert!(text.contains("package 3 LLC 7") && text.contains("offline"));
}

#[test]
fn every_size_and_machine_is_drawn() {
    let sizes = [1, 5, 10, 24, 39, 40, 81, 200];
    for cpus in [1, 2, 4, 63, 256, 1024] {
        let mut model = model(cpus);
        for (width, height) in sizes.iter().flat_map(|&w| sizes.map(|h| (w, h))) {
            model.help = !model.help;
            (model.page, model.first_task) = (width as usize % 3, usize::from(height));
            screen(&mut model, width, height);
        }
    }
    assert_eq!(screen(&mut model(4), 20, 5)[..2], ["too small: 40x10 at", "least"]);
}

#[test]
fn without_colour_there_is_none_and_nothing_is_lost() {
    let mut plain = model(4);
    plain.colour = false;
    let has_colour = |model: &mut Model| {
        let terminal = terminal(model, 80, 24);
        let mut cells = terminal.backend().buffer().content().iter();
        cells.any(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset))
    };
    assert!(!has_colour(&mut plain) && has_colour(&mut model(4)));
    assert_eq!(screen(&mut plain, 80, 24), screen(&mut model(4), 80, 24));
    plain.say("said".into());
    assert!(!has_colour(&mut plain));
}

/// What a CPU reports.
fn state(frequency_mhz: Option<f64>, deepest_pct: Option<f64>) -> CpuState {
    let deepest_idle = deepest_pct.map(|pct| ("C10 of this CPU".into(), pct));
    CpuState { frequency_mhz, deepest_idle, ..CpuState::default() }
}

#[test]
fn what_the_machine_reports_fits() {
    let mut model = model(4);
    let mut sample_shown = sample(4, 12);
    sample_shown.machine.power_w = Some(12.34);
    sample_shown.machine.cpus = [
        (0, state(Some(1600.0), Some(66.8))),
        (3, state(Some(1999.4), None)),
        // Offline.
        (1, state(Some(1.0), Some(1.0))),
        (2, state(None, Some(100.0))),
    ]
    .into();
    sample_shown.status.auto = true;
    sample_shown.status.reason = Some("the load fits: load 12 %, pressure 3 %, and more".into());
    model.learn(Ok(sample_shown));
    let lines = screen(&mut model, 80, 24);
    assert!(lines[0].contains("packing (auto: the load fits: load 12 %"));
    assert!(lines[0].contains("…  up 12 s"), "{}", lines[0]);
    assert!(lines[3].ends_with("  12.3 W  1800 MHz  C10 75 %"), "{}", lines[3]);
}

#[test]
fn what_a_cpu_reports_is_beside_its_bar() {
    let mut model = model(4);
    let mut sample_shown = sample(4, 12);
    // CPU 0 is busy for half of the time: all that time it cannot have slept.
    let other = Some(("cpu-sleep-0".into(), 5.0));
    let other = CpuState { deepest_idle: other, ..CpuState::default() };
    let first = state(Some(3200.4), Some(90.0));
    sample_shown.machine.cpus = [(0, first), (2, state(None, Some(99.6))), (3, other)].into();
    model.learn(Ok(sample_shown));
    let lines = screen(&mut model, 80, 24);
    // They have no name in common for the deepest one.
    assert!(lines[3].ends_with("  3200 MHz  deepest 52 %"), "{}", lines[3]);
    assert!(lines[6].ends_with("50 %  3200 MHz      C10 50 %   w3"), "{}", lines[6]);
    assert!(lines[7].ends_with(" 0 %     - MHz     C10 100 %"), "{}", lines[7]);
    assert!(lines[9].ends_with("10 %     - MHz  cpu-sle… 5 %"), "{}", lines[9]);
    // Where there is no room the bars are what counts.
    assert!(screen(&mut model, 58, 24)[6].ends_with("50 %   w3"));
}

#[test]
fn what_wakes_a_cpu_has_a_column_where_it_is_counted() {
    let mut model = model(4);
    let mut sample_shown = sample(4, 12);
    let counted = |wake_ups_per_s, interrupts_per_s| CpuState {
        wake_ups_per_s,
        interrupts_per_s: Some(interrupts_per_s),
        ..CpuState::default()
    };
    sample_shown.machine.cpus =
        [(0, counted(None, 1234.0)), (2, counted(None, 0.3)), (3, counted(None, 0.0))].into();
    model.learn(Ok(sample_shown.clone()));
    let lines = screen(&mut model, 80, 24);
    assert!(
        lines[5].starts_with("package 0 LLC 0  ") && lines[5].ends_with("   irq/s"),
        "{}",
        lines[5]
    );
    assert!(lines[6].ends_with(" 50 %    1.2k   w3"), "{}", lines[6]);
    assert!(lines[7].ends_with("  0 %     0.3"), "{}", lines[7]);
    assert!(!lines.concat().contains("MHz      C-state"), "a column that no CPU reports");
    sample_shown.machine.cpus = [
        (0, CpuState { wake_ups_per_s: Some(57.0), ..state(Some(1600.0), Some(30.0)) }),
        (2, counted(Some(0.2), 0.1)),
    ]
    .into();
    sample_shown.machine.package_states =
        vec![("C2".into(), 0.1), ("C6".into(), 20.2), ("C10".into(), 39.9)];
    model.learn(Ok(sample_shown));
    let lines = screen(&mut model, 100, 24);
    assert!(lines[5].starts_with("package 0 LLC 0  C6 20 %  C10 40 %  "), "{}", lines[5]);
    assert!(lines[5].ends_with("  wake/s   irq/s"), "{}", lines[5]);
    assert!(
        lines[6].ends_with(" 50 %  1600 MHz      C10 30 %      57       -   w3"),
        "{}",
        lines[6]
    );
    // What is less needed gives way first.
    let lines = screen(&mut model, 70, 24);
    assert!(lines[6].ends_with("C10 30 %      57   w3"), "{}", lines[6]);
}

#[test]
fn who_is_not_root_may_look() {
    let mut model = model(4);
    model.read_only = true;
    for what in ['p', 'b', 's', 'a', '-'] {
        assert_eq!(key(&mut model, what), Action::None);
        let lines = screen(&mut model, 80, 24);
        assert!(lines[0].contains("read-only  up"));
        assert_eq!(lines[23], "read-only: run it with sudo to switch");
    }
    key(&mut model, 'o');
    assert!(screen(&mut model, 80, 24)[23].starts_with("q quit"), "a key ends the message");
}

#[test]
fn a_scheduler_that_goes_may_come_again() {
    let mut model = model(4);
    model.learn(Err("scx_powerpack is not running".into()));
    let text = screen(&mut model, 80, 24).join("\n");
    assert!(text.contains("scx_powerpack is not running") && text.contains("trying again"));
    assert_eq!(key(&mut model, 's'), Action::None);
    // Its counters begin again.
    model.learn(Ok(sample(4, 1)));
    assert!(model.rates().is_none() && model.lost.is_none());
    assert!(screen(&mut model, 80, 24)[2].starts_with("per s: spills -  migrations -"));
    model.learn(Ok(sample(4, 2)));
    assert_eq!(model.rates().unwrap().spills, 7.0);
    // Another one, so soon that the first one cannot have been seen to go.
    let mut other = sample(4, 3);
    other.status.enable_seq = Some(2);
    model.learn(Ok(other));
    assert!(model.rates().is_none());
}

#[test]
fn a_look_too_soon_keeps_the_base() {
    let mut model = model(4);
    let mut soon = sample(4, 11);
    soon.status.now_ns += 1_000_000;
    model.learn(Ok(soon));
    assert!((model.non_idle_pct(0).unwrap() - 50.0).abs() < 0.1);
}

#[test]
fn keys_switch() {
    let mut model = model(4);
    let set = |mode, max_cores| {
        let policy = PolicyArgs { max_cores, ..PolicyArgs::default() };
        Action::Ask(Request::SetPolicy { mode, policy })
    };
    assert_eq!(key(&mut model, 's'), set(Some(Choice::Fixed(Mode::Spread)), None));
    assert_eq!(key(&mut model, 'a'), set(Some(Choice::Auto), None));
    assert_eq!(key(&mut model, '-'), set(None, Some(MaxCores::Cores(1))));
    assert!(screen(&mut model, 80, 24)[1].contains("ceiling 1 core "), "before it is answered");
    assert_eq!(key(&mut model, '-'), Action::None, "one is the minimum");
    model.learn(Ok(sample(4, 12)));
    assert_eq!(model.ceiling(), Some((1, 2)), "requested, though not yet in force");
    (0..3).for_each(|_| model.answered(Ok("in force".into())));
    assert_eq!(model.ceiling(), Some((1, 2)));
    assert_eq!(key(&mut model, '+'), set(None, Some(MaxCores::All)));
    model.answered(Err("no".into()));
    assert_eq!(screen(&mut model, 80, 24)[23], "no");
    assert_eq!(model.ceiling(), Some((1, 2)), "refused");
    for code in [KeyCode::Char('q'), KeyCode::Esc] {
        assert_eq!(press(&mut model, code), Action::Quit);
    }
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(pressed(&mut model, ctrl_c), Action::Quit);
}

#[test]
fn keys_pause_sort_scroll_and_help() {
    let mut model = model(4);
    assert_eq!(key(&mut model, ' '), Action::None);
    assert!(screen(&mut model, 80, 24)[0].contains("PAUSED  up"));
    assert_eq!(key(&mut model, ' '), Action::Look);
    press(&mut model, KeyCode::Down);
    assert!(screen(&mut model, 80, 24)[11].ends_with("task-1"));
    (0..99).for_each(|_| assert_eq!(press(&mut model, KeyCode::Down), Action::None));
    assert!(screen(&mut model, 80, 24)[22].ends_with("task-49"), "the last one is the end");
    press(&mut model, KeyCode::Home);
    key(&mut model, 'o');
    let lines = screen(&mut model, 80, 24);
    assert!(lines[10].contains("by CPU") && lines[12].ends_with("task-4"));
    key(&mut model, '?');
    let text = screen(&mut model, 80, 24).join("\n");
    assert!(text.contains("p b s e a  mode packing") && text.contains("not reported here"));
    assert_eq!(key(&mut model, 's'), Action::None, "it closes the help");
    assert!(!model.help);
}
