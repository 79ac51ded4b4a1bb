//! The reply of `apply`: a row for every topic and subscription of the files, a line for every
//! member that differs, and the secrets that were made.

use posthaste_core::model::visible::visible_line;
use serde_json::json;

use super::changes::{AppliedEntity, ApplyResult, EntityChange};
use crate::commands::state::state_text;
use crate::output::{CommandReply, api_word};

const HEADER: [&str; 4] = ["topic", "subscription", "result", "state"];

/// The reply to what was done.
pub(super) fn applied_reply(applied: &ApplyResult) -> CommandReply {
    let reply = CommandReply::new(json!({ "applied": applied.entities, "new": applied.secrets }));
    let reply = add_details(
        reply,
        applied,
        api_word,
        "secret, so it was sent and not compared",
    );
    let reply = reply.line(format!("\n{}", count_changes(applied, DONE)));
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
pub(super) fn planned_reply(planned: &ApplyResult) -> CommandReply {
    let reply = CommandReply::new(json!({ "planned": planned.entities }));
    let reply = add_details(
        reply,
        planned,
        |change| intent_word(*change).to_owned(),
        "secret, so it cannot be compared",
    );
    let counts = count_changes(planned, INTENDED);
    reply.line(format!("\n{counts}; nothing was sent"))
}

/// A word for each change.
type ChangeWords = [(EntityChange, &'static str); 4];

const DONE: ChangeWords = [
    (EntityChange::Created, "created"),
    (EntityChange::Changed, "changed"),
    (EntityChange::Unchanged, "unchanged"),
    (EntityChange::Deleted, "deleted"),
];

const INTENDED: ChangeWords = [
    (EntityChange::Created, "to create"),
    (EntityChange::Changed, "to change"),
    (EntityChange::Unchanged, "unchanged"),
    (EntityChange::Deleted, "to delete"),
];

fn intent_word(change: EntityChange) -> &'static str {
    let found = INTENDED.into_iter().find(|(it, _)| *it == change);
    found.map_or("", |(_, word)| word)
}

/// The number of entities with each change. Nothing is said of deletions where there are none.
fn count_changes(applied: &ApplyResult, words: ChangeWords) -> String {
    let counts = words.into_iter().filter_map(|(change, word)| {
        let entities = applied.entities.iter();
        let count = entities.filter(|entity| entity.change == change).count();
        (count > 0 || change != EntityChange::Deleted).then(|| format!("{count} {word}"))
    });
    counts.collect::<Vec<_>>().join(", ")
}

fn add_details(
    reply: CommandReply,
    applied: &ApplyResult,
    name: impl Fn(&EntityChange) -> String,
    secret: &str,
) -> CommandReply {
    let rows = applied
        .entities
        .iter()
        .map(|entity| entity_row(entity, name(&entity.change)))
        .collect();
    let reply = reply.table(HEADER, rows);
    applied
        .entities
        .iter()
        .flat_map(|entity| member_lines(entity, secret))
        .fold(reply, CommandReply::line)
}

fn entity_row(entity: &AppliedEntity, change: String) -> [String; 4] {
    let subscription = entity.subscription.clone().unwrap_or_default();
    let state = entity.status.as_ref().map(state_text).unwrap_or_default();
    [entity.topic.clone(), subscription, change, state]
}

/// The members that differ under the entity's name. None where there are none.
fn member_lines(entity: &AppliedEntity, secret: &str) -> Vec<String> {
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
    use crate::output::OutputStyle;
    use posthaste_core::api::MemberChange;

    fn entity(
        subscription: Option<&str>,
        change: EntityChange,
        after: Option<&str>,
    ) -> AppliedEntity {
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

    fn some() -> ApplyResult {
        let mut billing = entity(Some("billing"), EntityChange::Changed, Some(".pdf\u{1b}"));
        billing
            .not_compared
            .push("deliveryHeaders[X-Key].value".to_owned());
        let crm = entity(Some("crm"), EntityChange::Created, None);
        let entities = vec![entity(None, EntityChange::Unchanged, None), billing, crm];
        ApplyResult {
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
            planned_reply(&some())
                .render(OutputStyle::Plain)
                .into_string(),
            expected
        );
    }

    #[test]
    fn apply_shows_the_same_as_done() {
        let text = applied_reply(&some())
            .render(OutputStyle::Plain)
            .into_string();
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
        let text = planned_reply(&ApplyResult::default())
            .render(OutputStyle::Plain)
            .into_string();
        assert_eq!(
            text,
            "\n0 to create, 0 to change, 0 unchanged; nothing was sent\n"
        );
    }
}
