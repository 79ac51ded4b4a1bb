//! The rows of the operator's view: targets that are not well, and subscriptions whose events are held.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::api::{IsoTimestamp, LinkScope, LinkState, LinkView, StatusState};
use posthaste_core::circuit::{Condition, Target};
use posthaste_core::model::{EndpointUrl, Link, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{TopicRecord, layout};

/// A topic's record that cannot be read, and will not be by waiting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unreadable;

/// The subscription for which events are held.
#[derive(Debug)]
pub(super) struct Owner {
    topic: TopicName,
    name: SubscriptionName,
    /// The link of its endpoint; `None` if the subscription was deleted, or is not known.
    link: Option<Link>,
    state: LinkState,
    since: Option<IsoTimestamp>,
    objects: u32,
}

impl Owner {
    /// The owner of some held objects according to its topic's record.
    pub(super) fn of(
        record: Result<Option<&TopicRecord>, Unreadable>,
        topic: TopicName,
        name: SubscriptionName,
        objects: u32,
        now: Timestamp,
    ) -> Self {
        let state = if record.is_err() { LinkState::Unknown } else { LinkState::Releasing };
        let found =
            record.ok().flatten().and_then(|record| Some((record, record.settings.subscription(&name)?)));
        let Some((record, (name, settings))) = found else {
            return Self { topic, name, link: None, state, since: None, objects };
        };
        let status = settings.status.as_ref().map(|status| status.at(now));
        let state = status.as_ref().map_or(StatusState::Active, |status| status.state);
        Self {
            topic: record.name.clone(),
            name: name.clone(),
            link: EndpointUrl::parse(&settings.endpoint.url).ok().map(|url| url.link()),
            state: state.into(),
            since: status.map(|status| status.since),
            objects,
        }
    }

    /// Whether the events have a row of their own. What is held because a link fails is shown with that link,
    /// and a subscription that fails by itself has its row.
    fn has_own_row(&self, known: &BTreeSet<String>) -> bool {
        let Some(link) = &self.link else { return self.objects > 0 };
        let (link, topic, name) = (link.clone(), self.topic.clone(), self.name.clone());
        let is_link_known = known.contains(&Target::Link(link.clone()).to_string());
        let is_known = known.contains(&Target::Subscription { link, topic, name }.to_string());
        self.objects > 0 && !is_known && (self.state != LinkState::Releasing || !is_link_known)
    }

    fn row(&self) -> LinkView {
        LinkView::held(&self.topic, &self.name, self.link.as_ref(), self.state, self.since)
            .holding(self.objects)
    }

    /// The row of the subscription's health on a link, under the names that were written. Where its events go
    /// to this link, the row has their number, and the state that would hold them if the subscription were
    /// well.
    fn over(&self, row: LinkView, link: &Link) -> LinkView {
        let row = LinkView { topic: Some(self.topic.clone()), subscription: Some(self.name.clone()), ..row };
        if self.link.as_ref() != Some(link) {
            return row.holding(0);
        }
        match self.state {
            LinkState::Releasing => row.holding(self.objects),
            state => LinkView { state, since: self.since, next_probe: None, ..row }.holding(self.objects),
        }
    }
}

/// All rows, in their order. `owners` are by the prefix of the objects that are held for them.
pub(super) fn rows(failing: &[(Target, &Condition)], owners: &BTreeMap<String, Owner>) -> Vec<LinkView> {
    let on_links = objects_on_links(owners);
    let row = |(target, condition): &(Target, &Condition)| {
        let row = LinkView::of(target, condition);
        match target {
            Target::Link(link) => row.holding(on_links.get(link).copied().unwrap_or_default()),
            Target::Subscription { link, topic, name } => match owners.get(&layout::held_of(topic, name)) {
                Some(owner) => owner.over(row, link),
                None => row.holding(0),
            },
        }
    };
    let known: BTreeSet<_> = failing.iter().map(|(target, _)| target.to_string()).collect();
    let mut rows: Vec<_> = failing.iter().map(row).collect();
    rows.extend(owners.values().filter(|owner| owner.has_own_row(&known)).map(Owner::row));
    rows.sort_by(|one, other| place(one).cmp(&place(other)));
    rows
}

/// How many objects are held for the subscriptions on each link.
fn objects_on_links(owners: &BTreeMap<String, Owner>) -> BTreeMap<&Link, u32> {
    let mut links = BTreeMap::<_, u32>::new();
    for Owner { link, objects, .. } in owners.values() {
        let Some(link) = link else { continue };
        let sum = links.entry(link).or_default();
        *sum = sum.saturating_add(*objects);
    }
    links
}

/// The place of a row: a link comes before its subscriptions.
fn place(row: &LinkView) -> (Option<&str>, LinkScope, Option<String>, Option<String>) {
    let (topic, name) =
        (row.topic.as_ref().map(TopicName::folded), row.subscription.as_ref().map(SubscriptionName::folded));
    (row.link.as_deref(), row.scope, topic, name)
}
