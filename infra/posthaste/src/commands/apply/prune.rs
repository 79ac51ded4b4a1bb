//! `apply --prune`: what is on the server and in no file.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::model::{SubscriptionName, TopicName};
use ureq::http::Method;

use super::changes::{Applied, AppliedEntity};
use super::file::{Checked, topics};
use super::server::Present;
use crate::cli::{ConfirmedArg, SubscriptionArgs};
use crate::client::ClientError;
use crate::commands::giving_up::{Loss, Waiting};
use crate::commands::replays::counted;
use crate::commands::session::Session;
use crate::commands::whole_topics::Unreadable;
use crate::error::CommandError;

/// Topics, and subscriptions of topics that the files declare, which are in no file.
#[derive(Debug, Default)]
pub(super) struct Surplus {
    /// With the versions that were looked at.
    topics: Vec<(TopicName, Option<String>)>,
    subscriptions: Vec<(TopicName, SubscriptionName)>,
}

impl Surplus {
    /// Finds them.
    pub(super) fn find(
        session: &Session,
        present: &Present,
        files: &[Checked],
    ) -> Result<Self, CommandError> {
        if let Some(topic) = present.unreadable() {
            return Err(Unreadable(topic.to_owned()).into());
        }
        let declared: BTreeMap<_, _> = topics(files)
            .map(|wanted| (wanted.name.folded(), wanted.declared))
            .collect();
        let mut surplus = Self::default();
        for name in present.names() {
            let Some(settings) = declared.get(&name.folded()) else {
                let version = present.version(name).map(str::to_owned);
                surplus.topics.push((name.clone(), version));
                continue;
            };
            let Some(view) = present.view(session, name)? else {
                continue;
            };
            let shown = view.settings(session)?;
            let wanted: BTreeSet<_> = settings.subscriptions.keys().map(folded).collect();
            let names = shown.subscriptions.into_keys();
            let names = names.filter(|it| !wanted.contains(&folded(it)));
            surplus
                .subscriptions
                .extend(names.map(|it| (name.clone(), it)));
        }
        Ok(surplus)
    }

    /// Makes sure that they are to be deleted, where there are any: by `--yes`, or by the answer of
    /// a person.
    pub(super) fn confirm(
        &self,
        session: &Session,
        is_confirmed: bool,
    ) -> Result<(), CommandError> {
        if is_confirmed || self.is_empty() {
            return Ok(());
        }
        let confirmed = ConfirmedArg { yes: false };
        let mut waiting = Waiting::default();
        for (topic, _) in &self.topics {
            waiting = waiting + Waiting::for_topic(session, topic.as_str(), confirmed)?;
        }
        for (topic, name) in &self.subscriptions {
            let of = SubscriptionArgs {
                topic: topic.to_string(),
                name: name.to_string(),
            };
            waiting = waiting + Waiting::for_subscription(session, &of, confirmed)?;
        }
        let action = format!("delete {}", self.in_words());
        Loss::of_settings(waiting).confirm(&action)
    }

    /// Deletes them, and adds what was done.
    pub(super) fn delete(
        &self,
        session: &Session,
        applied: &mut Applied,
    ) -> Result<(), ClientError> {
        for (topic, name) in &self.subscriptions {
            let path = ["topics", topic.as_str(), "subscriptions", name.as_str()];
            gone(session, &path, None)?;
            let entity = AppliedEntity::deleted(topic, Some(name));
            applied.entities.push(entity);
        }
        for (topic, version) in &self.topics {
            // A topic that was changed since it was looked at is another one.
            gone(session, &["topics", topic.as_str()], version.as_ref())?;
            applied.entities.push(AppliedEntity::deleted(topic, None));
        }
        Ok(())
    }

    /// Adds what would be done.
    pub(super) fn add_to(&self, planned: &mut Applied) {
        let subscriptions = self.subscriptions.iter();
        let subscriptions =
            subscriptions.map(|(topic, name)| AppliedEntity::deleted(topic, Some(name)));
        let topics = self.topics.iter();
        let topics = topics.map(|(topic, _)| AppliedEntity::deleted(topic, None));
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
            .map(|(count, kind)| counted(count as u64, kind))
            .collect();
        named.join(" and ")
    }
}

/// Deletes something. Whoever deleted it before has done the same.
fn gone(session: &Session, path: &[&str], version: Option<&String>) -> Result<(), ClientError> {
    let call = session.call(Method::DELETE, path);
    match session.client.send(call.header("if-match", version)) {
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(()),
        sent => sent.map(|_| ()),
    }
}

fn folded(name: &SubscriptionName) -> String {
    name.folded()
}
