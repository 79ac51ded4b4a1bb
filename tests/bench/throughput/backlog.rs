//! Events that wait: their memory, the restart on them, and how fast they are delivered in the end.

mod course;

use crate::arguments::Arguments;
use crate::goal::{Goal, Verdict, joined};
use crate::rounds::{in_turns, spread};
use crate::setup::Mode;
use crate::sink::Sink;
use crate::table;
use crate::traffic::Traffic;
use crate::trial;

pub(crate) use course::{Course, run, settings};

const HEAD: [&str; 8] = [
    "events that wait",
    "idle",
    "with them, most",
    "bytes of an event",
    "restart after kill -9",
    "after it, most",
    "drain",
    "of an idle queue's rate",
];

/// Events up to which the bounds of a million hold.
const MILLION: usize = 1_000_000;

const RESIDENT_GOAL: Goal = Goal::AtMost(200.0, " MiB");
const RESTART_GOAL: Goal = Goal::AtMost(3.0, " s");
const DRAIN_GOAL: Goal = Goal::AtLeast(90.0, " %");

/// The goals of more events than that.
const EVENT_BYTES_GOAL: Goal = Goal::AtMost(120.0, " B");
const LONG_RESTART_GOAL: Goal = Goal::AtMost(30.0, " s");

/// Fills and drains a queue with each number of events, and prints the table.
#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
pub(crate) fn measure(sink: &Sink, arguments: &Arguments) -> Vec<Verdict> {
    let setup = arguments.setup(Mode::Off);
    let batch = arguments.backlog_batch;
    let idle_rate = idle_rate(sink, arguments);
    let mut rows = Vec::new();
    let mut verdicts = Vec::new();
    for events in &arguments.backlog_events {
        let course = run(sink, *events, batch, &setup);
        rows.push(row(*events, &course, idle_rate));
        verdicts.extend(judge(*events, &course, idle_rate));
    }
    let title =
        format!("Backlog, requests of {batch}, delivery log off; an idle queue: {idle_rate:.0}/s");
    table::print(&title, &HEAD, &rows);
    println!("\n{}", joined(&verdicts));
    verdicts
}

/// Deliveries a second where nothing waits: what is published is delivered at once.
fn idle_rate(sink: &Sink, arguments: &Arguments) -> f64 {
    let traffic = Traffic::of_settings(settings(sink), arguments.backlog_batch);
    let runs = in_turns(
        arguments.rounds,
        &[("idle queue".to_owned(), traffic)],
        |traffic| {
            trial::run(
                sink,
                traffic,
                arguments.deliveries,
                &arguments.setup(Mode::Off),
            )
            .per_second
        },
    );
    spread(&runs[0], |rate| *rate).median
}

fn row(events: usize, course: &Course, idle_rate: f64) -> Vec<String> {
    let Course {
        idle,
        full,
        restarted,
        ..
    } = course;
    let rate = course.drained_per_second();
    vec![
        events.to_string(),
        format!("{:.0} MiB", idle.now_mib),
        format!("{:.0}, {:.0} MiB", full.now_mib, full.most_mib),
        format!("{:.0} B", course.event_bytes()),
        format!("{:.2} s", course.restart_secs),
        format!("{:.0}, {:.0} MiB", restarted.now_mib, restarted.most_mib),
        format!(
            "{rate:.0}/s, {:.1} us, then {:.0} MiB",
            course.drain_cpu_us(),
            course.drained.now_mib
        ),
        format!("{:.1} %", rate / idle_rate * 100.0),
    ]
}

fn judge(events: usize, course: &Course, idle_rate: f64) -> Vec<Verdict> {
    let name = |figure: &str| format!("{events} wait: {figure}");
    if events > MILLION {
        return vec![
            EVENT_BYTES_GOAL.judge(name("memory of an event"), course.event_bytes()),
            LONG_RESTART_GOAL.judge(name("restart"), course.restart_secs),
        ];
    }
    let resident = course.full.most_mib.max(course.restarted.most_mib);
    let share = course.drained_per_second() / idle_rate * 100.0;
    vec![
        RESIDENT_GOAL.judge(name("most memory"), resident),
        RESTART_GOAL.judge(name("restart"), course.restart_secs),
        DRAIN_GOAL.judge(name("drain, of an idle queue's rate"), share),
    ]
}
