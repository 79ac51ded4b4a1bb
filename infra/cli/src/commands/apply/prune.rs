//! `apply --prune`: what is on the server and in no file.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::model::{SubscriptionName, TopicName};
use ureq::http::Method;

use super::changes::{AppliedEntity, ApplyResult};
use super::file::{CheckedFile, declared_topics};
use super::server::ServerTopics;
use crate::cli::{ConfirmedArg, SubscriptionArgs};
use crate::client::ClientError;
use crate::commands::giving_up::{LossText, WaitingTotal};
use crate::commands::replays::count_with_noun;
use crate::commands::session::AdminSession;
use crate::commands::whole_topics::UnreadableTopicError;
use crate::error::CommandError;

/// Topics, and subscriptions of topics that the files declare, which are in no file.
#[derive(Debug, Default)]
pub(super) struct UndeclaredEntities {
    /// With the versions that were looked at.
    topics: Vec<(TopicName, Option<String>)>,
    subscriptions: Vec<(TopicName, SubscriptionName)>,
}

impl UndeclaredEntities {
    /// Finds them.
    pub(super) fn find(
        session: &AdminSession,
        present: &ServerTopics,
        files: &[CheckedFile],
    ) -> Result<Self, CommandError> {
        if let Some(topic) = present.first_unreadable() {
            return Err(UnreadableTopicError(topic.to_owned()).into());
        }
        let declared: BTreeMap<_, _> = declared_topics(files)
            .map(|wanted| (wanted.name.folded(), wanted.declared))
            .collect();
        let mut surplus = Self::default();
        for name in present.names() {
            let Some(settings) = declared.get(&name.folded()) else {
                let version = present.listed_version(name).map(str::to_owned);
                surplus.topics.push((name.clone(), version));
                continue;
            };
            let Some(view) = present.read_topic(session, name)? else {
                continue;
            };
            let shown = view.shown_settings(session)?;
            let wanted: BTreeSet<_> = settings.subscriptions.keys().map(folded_name).collect();
            let names = shown.subscriptions.into_keys();
            let names = names.filter(|it| !wanted.contains(&folded_name(it)));
            surplus
                .subscriptions
                .extend(names.map(|it| (name.clone(), it)));
        }
        Ok(surplus)
    }

    /// Makes sure that they are to be deleted, where there are any: by `--yes`, or by the answer of
    /// a person.
    pub(super) fn confirm_deletion(
        &self,
        session: &AdminSession,
        is_confirmed: bool,
    ) -> Result<(), CommandError> {
        if is_confirmed || self.is_empty() {
            return Ok(());
        }
        let confirmed = ConfirmedArg { yes: false };
        let mut waiting = WaitingTotal::default();
        for (topic, _) in &self.topics {
            waiting = waiting + WaitingTotal::for_topic(session, topic.as_str(), confirmed)?;
        }
        for (topic, name) in &self.subscriptions {
            let of = SubscriptionArgs {
                topic: topic.to_string(),
                name: name.to_string(),
            };
            waiting = waiting + WaitingTotal::for_subscription(session, &of, confirmed)?;
        }
        let action = format!("delete {}", self.in_words());
        LossText::of_settings(waiting).ask_to_confirm(&action)
    }

    /// Deletes them, and adds what was done.
    pub(super) fn delete_all(
        &self,
        session: &AdminSession,
        applied: &mut ApplyResult,
    ) -> Result<(), ClientError> {
        for (topic, name) in &self.subscriptions {
            let path = ["topics", topic.as_str(), "subscriptions", name.as_str()];
            delete_if_present(session, &path, None)?;
            let entity = AppliedEntity::for_deletion(topic, Some(name));
            applied.entities.push(entity);
        }
        for (topic, version) in &self.topics {
            // A topic that was changed since it was looked at is another one.
            delete_if_present(session, &["topics", topic.as_str()], version.as_ref())?;
            applied
                .entities
                .push(AppliedEntity::for_deletion(topic, None));
        }
        Ok(())
    }

    /// Adds what would be done.
    pub(super) fn add_to_plan(&self, planned: &mut ApplyResult) {
        let subscriptions = self.subscriptions.iter();
        let subscriptions =
            subscriptions.map(|(topic, name)| AppliedEntity::for_deletion(topic, Some(name)));
        let topics = self.topics.iter();
        let topics = topics.map(|(topic, _)| AppliedEntity::for_deletion(topic, None));
        planned.entities.extend(subscriptions.chain(topics));
    }

    fn is_empty(&self) -> bool {
        self.topics.is_empty() && self.subscriptions.is_empty()
    }

    fn in_words(&self) -> String {
        let kinds = [
            (self.topics.len(), "topic"),
            (self.subscriptions.len(), "subscription"),
        ];
        let named = kinds.into_iter().filter(|(count, _)| *count > 0);
        let named: Vec<_> = named
            .map(|(count, kind)| count_with_noun(count as u64, kind))
            .collect();
        named.join(" and ")
    }
}

/// Deletes something. Whoever deleted it before has done the same.
fn delete_if_present(
    session: &AdminSession,
    path: &[&str],
    version: Option<&String>,
) -> Result<(), ClientError> {
    let call = session.call(Method::DELETE, path);
    match session.client.send(call.header("if-match", version)) {
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(()),
        sent => sent.map(|_| ()),
    }
}

fn folded_name(name: &SubscriptionName) -> String {
    name.folded()
}
