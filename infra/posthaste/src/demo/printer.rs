//! The demo's output: a line for each attempt as it happens, and the summary.

use std::path::Path;
use std::time::Duration;

use posthaste_cli::commands::AdminSession;
use posthaste_cli::output::{CommandReply, indent_json};
use posthaste_cli::terminal::{StandardStream, TerminalText};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde_json::json;

use super::plan::{DemoSample, ROLES};
use super::story::DemoStory;
use super::subscriber::ReceivedWebhook;

/// The folder of dead letters within the data folder.
const DEAD_LETTERS: &str = "dead-letters";

/// Lines around the summary.
const COUNTED: &str = "Attempts and retries are requests, the other two are events.";
const DEAD: &str = "\nThe events that posthaste gave up are dead letters, in these files:";
const LAST: &str = "\nThe last of them. posthaste added what follows from deadletterreason on:";

/// Prints what happens while it happens.
#[derive(Debug)]
pub(super) struct DemoPrinter {
    stream: StandardStream,
    began: Duration,
}

impl DemoPrinter {
    /// With `json`, standard output belongs to the summary, and the story goes to standard error.
    pub(super) fn new(json: bool) -> Self {
        Self {
            stream: if json {
                StandardStream::Error
            } else {
                StandardStream::Output
            },
            began: SystemClock.monotonic(),
        }
    }

    pub(super) fn print_opening(&self, session: &AdminSession, data_dir: &Path) {
        let url = session.client.base_url().as_str().trim_end_matches('/');
        self.print_line(&format!(
            "A server runs on {url}. Its data folder is {}.\n",
            data_dir.display()
        ));
        self.print_line("Topics, their subscriptions, and how each endpoint answers:");
        for role in &ROLES {
            self.print_line(&format!(
                "  {:<8} → {:<11} {}",
                role.topic,
                role.subscription,
                role.behavior_in_words()
            ));
        }
        self.print_line("\nWhat happens, with the seconds since the start:");
    }

    pub(super) fn print_published(&self, sample: &DemoSample) {
        self.print_line(&format!(
            "{}  published to {:<8} {}",
            self.elapsed_text(),
            sample.topic,
            sample.path
        ));
    }

    pub(super) fn print_attempt(&self, seen: &ReceivedWebhook) {
        let ReceivedWebhook {
            subscription,
            event,
            event_type,
            attempt,
            answer,
            is_signed,
        } = seen;
        let id: String = event.chars().take(8).collect();
        let tail: String = event
            .chars()
            .skip(event.chars().count().saturating_sub(4))
            .collect();
        let signature = if *is_signed {
            "signature verified ✓"
        } else {
            "SIGNATURE WRONG ✗"
        };
        self.print_line(&format!(
            "{}  {subscription:<11} attempt {attempt} → {answer}  {signature}  {event_type} {id}…{tail}",
            self.elapsed_text()
        ));
    }

    fn elapsed_text(&self) -> String {
        let secs = SystemClock
            .monotonic()
            .saturating_sub(self.began)
            .as_secs_f64();
        format!("{secs:6.2} s")
    }

    fn print_line(&self, line: &str) {
        // The demo goes on without a reader: its exit code still says how it ended.
        let _ = self.stream.write_line(&TerminalText::from_text(line));
    }
}

/// The summary of a story that ended as it should.
pub(super) fn summary_reply(story: &DemoStory, data_dir: &Path) -> CommandReply {
    let endings = ROLES.map(|role| story.ending_for(&role));
    let folder = data_dir.join(DEAD_LETTERS);
    let mut paths = Vec::new();
    for letter in story.dead_letters() {
        paths.push(folder.join(&letter.object).display().to_string());
    }
    let json = json!({ "attempts": story.seen, "subscriptions": endings, "deadLetters": paths });
    let header = [
        "topic",
        "subscription",
        "its endpoint",
        "attempts",
        "delivered",
        "retries",
        "dead-lettered",
    ];
    let rows = ROLES.iter().zip(&endings).map(|(role, ending)| {
        [
            role.topic.to_owned(),
            role.subscription.to_owned(),
            role.behavior_in_words().to_owned(),
            ending.attempts.to_string(),
            ending.delivered.to_string(),
            ending.retried.to_string(),
            ending.dead_lettered.to_string(),
        ]
    });
    let mut reply = CommandReply::new(json)
        .line("")
        .table(header, rows.collect())
        .line(COUNTED)
        .line(DEAD);
    for path in &paths {
        reply = reply.line(format!("  {path}"));
    }
    reply
        .line(LAST)
        .line(indent_json(&story.last_dead_event))
        .line("\nEverything ended as it should. Next, a server of your own: posthaste --help")
}
