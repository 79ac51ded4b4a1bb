//! `audit`: who changed what.

use posthaste_core::api::{AuditActor, AuditEntry, AuditPage};
use serde_json::json;
use ureq::http::Method;

use super::session::AdminSession;
use crate::cli::AuditArgs;
use crate::commands::period::query_period;
use crate::error::CommandError;
use crate::output::{CommandReply, api_word};

/// Most changes on one page.
const PAGE_MAX: usize = 1_000;

/// Most members of an entry that a row names.
const CHANGES_SHOWN_MAX: usize = 3;

/// Most characters of a cell with values.
const CELL_CHARS_MAX: usize = 160;

const HEADER: [&str; 8] = [
    "time", "who", "via", "address", "what", "on", "outcome", "changes",
];

pub fn run(session: &AdminSession, arguments: &AuditArgs) -> Result<CommandReply, CommandError> {
    let AuditArgs {
        topic,
        from,
        to,
        limit,
    } = arguments;
    let [from, to] = query_period(*from, *to);
    let wanted = *limit as usize;
    let mut all = AuditPage {
        entries: Vec::new(),
        cursor: None,
    };
    loop {
        let left = wanted.saturating_sub(all.entries.len());
        let call = session
            .call(Method::GET, &["audit"])
            .query("topic", topic.as_ref())
            .query("from", from.as_ref())
            .query("to", to.as_ref())
            .query("limit", Some(left.clamp(1, PAGE_MAX)))
            .query("cursor", all.cursor.take());
        let page: AuditPage = session.client.send_for_json(call)?;
        all.entries.extend(page.entries);
        all.cursor = page.cursor;
        if all.entries.len() >= wanted || all.cursor.is_none() {
            return Ok(audit_reply(&all));
        }
    }
}

fn audit_reply(page: &AuditPage) -> CommandReply {
    let rows = page.entries.iter().map(entry_row).collect();
    let reply =
        CommandReply::new(json!(page)).list(HEADER, rows, "the audit trail has no such changes");
    if page.cursor.is_some() {
        reply.note("There may be more: a larger --limit lists them.")
    } else {
        reply
    }
}

fn entry_row(entry: &AuditEntry) -> [String; 8] {
    [
        entry.at.0.to_string(),
        actor_cell(entry),
        entry.via.map(|via| api_word(&via)).unwrap_or_default(),
        entry
            .address
            .map(|address| address.to_string())
            .unwrap_or_default(),
        api_word(&entry.action),
        target_cell(entry),
        api_word(&entry.outcome),
        changes_cell(entry),
    ]
}

fn actor_cell(entry: &AuditEntry) -> String {
    let actor = match entry.actor {
        AuditActor::AdminKey => "admin key",
        AuditActor::Endpoint => "endpoint",
        AuditActor::Posthaste => "posthaste",
        AuditActor::Unknown => "unknown",
    };
    match &entry.key {
        Some(key) => format!("{actor} {key}"),
        None => actor.to_owned(),
    }
}

/// The topic, the subscription and what else is meant, as far as there are any.
fn target_cell(entry: &AuditEntry) -> String {
    let topic = entry.topic.as_ref().map(ToString::to_string);
    let subscription = entry.subscription.as_ref().map(ToString::to_string);
    let target = entry.target.clone().filter(|target| !target.is_empty());
    let parts = [topic, subscription, target].into_iter().flatten();
    parts.collect::<Vec<_>>().join("/")
}

/// The first members that differ, and the number of the others; else what is said of the change.
fn changes_cell(entry: &AuditEntry) -> String {
    let shown = entry.changes.iter().take(CHANGES_SHOWN_MAX);
    let mut shown: Vec<_> = shown
        .map(|change| truncate_cell(&change.to_string()))
        .collect();
    let hidden = entry.changes.len().saturating_sub(CHANGES_SHOWN_MAX);
    let hidden = entry.changes_left_out + u64::try_from(hidden).unwrap_or(u64::MAX);
    if hidden > 0 {
        shown.push(format!("and {hidden} more"));
    }
    let detail = entry.detail.as_deref().map(truncate_cell);
    let count = entry
        .count
        .map(|count| format!("{count} in the hour from then"));
    shown.extend(detail.into_iter().chain(count));
    shown.join("; ")
}

fn truncate_cell(text: &str) -> String {
    match text.char_indices().nth(CELL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::output::OutputStyle;

    fn check(page: Value, expected: &str) {
        let page: AuditPage = serde_json::from_value(page).unwrap();
        assert_eq!(
            audit_reply(&page).render(OutputStyle::Plain).into_string(),
            expected.trim_start()
        );
    }

    #[test]
    fn a_row_says_who_changed_what_from_where() {
        let entries = json!({ "entries": [
            { "id": "3", "at": "2026-11-21T10:02:00Z", "actor": "unknown", "via": "console",
              "address": "203.0.113.9", "action": "key.refused", "outcome": "refused", "count": 7 },
            { "id": "2", "at": "2026-11-21T10:01:00Z", "actor": "posthaste", "topic": "Orders",
              "subscription": "Billing", "action": "subscription.disable", "outcome": "done",
              "detail": "the endpoint answered 410 Gone" },
            { "id": "1", "at": "2026-11-21T10:00:00Z", "actor": "adminKey", "key": "3f2a91bc",
              "via": "cli", "address": "::1", "topic": "Orders", "action": "key.regenerate",
              "target": "key1", "outcome": "begun", "changesLeftOut": 2,
              "changes": [{ "member": "keys.key1", "before": "(masked:01)", "after": "(masked:02)" }] },
        ] });
        let expected = r"
TIME                      WHO                 VIA      ADDRESS      WHAT                  ON              OUTCOME  CHANGES
2026-11-21T10:02:00.000Z  unknown             console  203.0.113.9  key.refused                           refused  7 in the hour from then
2026-11-21T10:01:00.000Z  posthaste                                 subscription.disable  Orders/Billing  done     the endpoint answered 410 Gone
2026-11-21T10:00:00.000Z  admin key 3f2a91bc  cli      ::1          key.regenerate        Orders/key1     begun    keys.key1: (masked:01) → (masked:02); and 2 more
";
        check(entries, expected);
    }

    #[test]
    fn a_text_of_a_stranger_steers_no_terminal() {
        let entries = json!({ "entries": [
            { "id": "1", "at": "2026-11-21T10:00:00Z", "actor": "adminKey", "action": "event.resend",
              "target": "\u{1b}[2J\u{202e}x", "outcome": "done" },
        ] });
        let page: AuditPage = serde_json::from_value(entries).unwrap();
        for style in [OutputStyle::Plain, OutputStyle::Terminal, OutputStyle::Json] {
            let text = audit_reply(&page).render(style).into_string();
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        }
    }
}
