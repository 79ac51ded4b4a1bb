//! The reply of `apply`: a row for every topic and subscription of the files, a line for every
//! member that differs, and the secrets that were made.

use posthaste_core::model::visible::visible_line;
use serde_json::json;

use super::changes::{Applied, AppliedEntity, Change};
use crate::commands::state::state;
use crate::output::{Reply, word};

const HEADER: [&str; 4] = ["topic", "subscription", "result", "state"];

/// The reply to what was done.
pub(super) fn done(applied: &Applied) -> Reply {
    let reply = Reply::new(json!({ "applied": applied.entities, "new": applied.secrets }));
    let reply = details(
        reply,
        applied,
        word,
        "secret, so it was sent and not compared",
    );
    let reply = reply.line(format!("\n{}", counted(applied, DONE)));
    if applied.secrets.is_empty() {
        return reply;
    }
    let rows = applied
        .secrets
        .iter()
        .map(|new| [new.of.clone(), new.kind.to_owned(), new.value.clone()]);
    reply
        .line("\nNew keys and secrets. Signing secrets are shown this once; keep them:")
        .table(["of", "kind", "value"], rows.collect())
}

/// The reply to what would be done.
pub(super) fn planned(planned: &Applied) -> Reply {
    let reply = Reply::new(json!({ "planned": planned.entities }));
    let reply = details(
        reply,
        planned,
        |change| intent(*change).to_owned(),
        "secret, so it cannot be compared",
    );
    let counts = counted(planned, INTENDED);
    reply.line(format!("\n{counts}; nothing was sent"))
}

/// A word for each change.
type Words = [(Change, &'static str); 4];

const DONE: Words = [
    (Change::Created, "created"),
    (Change::Changed, "changed"),
    (Change::Unchanged, "unchanged"),
    (Change::Deleted, "deleted"),
];

const INTENDED: Words = [
    (Change::Created, "to create"),
    (Change::Changed, "to change"),
    (Change::Unchanged, "unchanged"),
    (Change::Deleted, "to delete"),
];

fn intent(change: Change) -> &'static str {
    let found = INTENDED.into_iter().find(|(it, _)| *it == change);
    found.map_or("", |(_, word)| word)
}

/// How many entities have each change. Nothing is said of deletions where there are none.
fn counted(applied: &Applied, words: Words) -> String {
    let counts = words.into_iter().filter_map(|(change, word)| {
        let entities = applied.entities.iter();
        let count = entities.filter(|entity| entity.change == change).count();
        (count > 0 || change != Change::Deleted).then(|| format!("{count} {word}"))
    });
    counts.collect::<Vec<_>>().join(", ")
}

fn details(
    reply: Reply,
    applied: &Applied,
    name: impl Fn(&Change) -> String,
    secret: &str,
) -> Reply {
    let rows = applied
        .entities
        .iter()
        .map(|entity| row(entity, name(&entity.change)))
        .collect();
    let reply = reply.table(HEADER, rows);
    applied
        .entities
        .iter()
        .flat_map(|entity| lines(entity, secret))
        .fold(reply, Reply::line)
}

fn row(entity: &AppliedEntity, change: String) -> [String; 4] {
    let subscription = entity.subscription.clone().unwrap_or_default();
    let state = entity.status.as_ref().map(state).unwrap_or_default();
    [entity.topic.clone(), subscription, change, state]
}

/// The members that differ under the entity's name. None where there are none.
fn lines(entity: &AppliedEntity, secret: &str) -> Vec<String> {
    let members = entity
        .members
        .iter()
        .map(|change| format!("  {}", visible_line(&change.to_string())));
    let not_compared = entity
        .not_compared
        .iter()
        .map(|member| format!("  {member}: {secret}"));
    let mut lines: Vec<_> = members.chain(not_compared).collect();
    if !lines.is_empty() {
        let subscription = entity
            .subscription
            .as_ref()
            .map_or_else(String::new, |name| format!("/{name}"));
        lines.insert(0, format!("\n{}{subscription}:", entity.topic));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;
    use posthaste_core::api::MemberChange;

    fn entity(subscription: Option<&str>, change: Change, after: Option<&str>) -> AppliedEntity {
        let change_of = |after: &str| MemberChange {
            member: "filter.subjectEndsWith".to_owned(),
            before: None,
            after: Some(json!(after)),
        };
        AppliedEntity {
            topic: "orders".to_owned(),
            subscription: subscription.map(str::to_owned),
            change,
            members: after.map(change_of).into_iter().collect(),
            not_compared: Vec::new(),
            status: None,
        }
    }

    fn some() -> Applied {
        let mut billing = entity(Some("billing"), Change::Changed, Some(".pdf\u{1b}"));
        billing
            .not_compared
            .push("deliveryHeaders[X-Key].value".to_owned());
        let crm = entity(Some("crm"), Change::Created, None);
        let entities = vec![entity(None, Change::Unchanged, None), billing, crm];
        Applied {
            entities,
            secrets: Vec::new(),
        }
    }

    #[test]
    fn a_dry_run_shows_every_member_and_ends_with_the_numbers() {
        let expected = "\
TOPIC   SUBSCRIPTION  RESULT     STATE
orders                unchanged
orders  billing       to change
orders  crm           to create

orders/billing:
  filter.subjectEndsWith: (default) → .pdf⟦U+001B⟧
  deliveryHeaders[X-Key].value: secret, so it cannot be compared

1 to create, 1 to change, 1 unchanged; nothing was sent
";
        assert_eq!(
            planned(&some()).render(Style::Plain).into_string(),
            expected
        );
    }

    #[test]
    fn apply_shows_the_same_as_done() {
        let text = done(&some()).render(Style::Plain).into_string();
        assert!(
            text.contains("orders  billing       changed\n") && !text.contains("New keys"),
            "{text}"
        );
        assert!(
            text.contains(
                "\n  deliveryHeaders[X-Key].value: secret, so it was sent and not compared\n"
            ),
            "{text}"
        );
        assert!(
            text.ends_with("\n1 created, 1 changed, 1 unchanged\n"),
            "{text}"
        );
    }

    #[test]
    fn files_without_topics_have_no_header() {
        let text = planned(&Applied::default())
            .render(Style::Plain)
            .into_string();
        assert_eq!(
            text,
            "\n0 to create, 0 to change, 0 unchanged; nothing was sent\n"
        );
    }
}
