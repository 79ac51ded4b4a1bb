//! The rows of the operator's view: unhealthy targets, and subscriptions whose events are held.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::api::{
    IsoTimestamp, LinkScope, LinkState, LinkView, StatusState, WaitingCount,
};
use posthaste_core::circuit::{DeliveryTarget, TargetCondition};
use posthaste_core::model::{EndpointUrl, Link, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_services::AllWaiting;

/// The subscription for which events are held.
pub(super) struct HeldSubscription {
    topic: TopicName,
    name: SubscriptionName,
    /// The link of its endpoint; `None` if the subscription was deleted or its topic's record
    /// cannot be read.
    link: Option<Link>,
    state: LinkState,
    since: Option<IsoTimestamp>,
    objects: u32,
    /// Whether the subscription was deleted.
    is_gone: bool,
    /// Whether the delivery log has no records of it, by which what waits could be counted.
    is_unrecorded: bool,
}

impl HeldSubscription {
    /// The owner of held objects according to its topic's record; `None` if the record does not
    /// have it.
    pub(super) fn from_record(
        record: &TopicRecord,
        name: &SubscriptionName,
        now: Timestamp,
    ) -> Option<Self> {
        let (name, settings) = record.settings.find_subscription(name)?;
        let status = settings
            .status
            .as_ref()
            .map(|status| status.effective_at(now));
        let state = status
            .as_ref()
            .map_or(StatusState::Active, |status| status.state);
        Some(Self {
            topic: record.name.clone(),
            name: name.clone(),
            link: EndpointUrl::parse(&settings.endpoint.url)
                .ok()
                .map(|url| url.link()),
            state: state.into(),
            since: status.map(|status| status.since),
            objects: 0,
            is_gone: false,
            is_unrecorded: false,
        })
    }

    /// The owner of held objects that no record has. In the state `Unknown` its topic's record
    /// could not be read.
    pub(super) fn without_record(
        topic: TopicName,
        name: SubscriptionName,
        state: LinkState,
    ) -> Self {
        Self {
            topic,
            name,
            link: None,
            state,
            since: None,
            objects: 0,
            is_gone: state != LinkState::Unknown,
            is_unrecorded: false,
        }
    }

    pub(super) fn with_objects(self, objects: u32) -> Self {
        Self { objects, ..self }
    }

    /// The same owner, of whose deliveries the log has no records if `is_unrecorded`.
    pub(super) fn unrecorded_if(self, is_unrecorded: bool) -> Self {
        Self {
            is_unrecorded,
            ..self
        }
    }

    /// Whether the held events need a row of their own. Events that are held because a link fails
    /// are shown with that link, and a subscription that fails has a row already.
    fn has_own_row(&self, known: &BTreeSet<String>) -> bool {
        let Some(link) = &self.link else {
            return self.objects > 0;
        };
        let link = link.clone();
        let topic = self.topic.clone();
        let name = self.name.clone();
        let is_link_known = known.contains(&DeliveryTarget::Link(link.clone()).to_string());
        let is_known =
            known.contains(&DeliveryTarget::Subscription { link, topic, name }.to_string());
        self.objects > 0 && !is_known && (self.state != LinkState::Releasing || !is_link_known)
    }

    fn waiting_count(&self, waiting: &AllWaiting) -> WaitingCount {
        let mut count = waiting.for_subscription(&self.topic, &self.name);
        if self.is_unrecorded {
            count.forget_recorded();
        }
        count
    }

    fn held_row(&self, waiting: &AllWaiting) -> LinkView {
        let row = LinkView::for_held_subscription(
            &self.topic,
            &self.name,
            self.link.as_ref(),
            self.state,
            self.since,
        );
        LinkView {
            waiting: Some(Box::new(self.waiting_count(waiting).waiting_view(None))),
            ..row.with_held_objects(self.objects)
        }
    }

    /// The row of the subscription's health on a link, under the names that were written. If its
    /// events go to this link, the row has their number, and shows the state that holds them
    /// apart from the subscription's health.
    fn merge_into_row(&self, row: LinkView, link: &Link, waiting: &AllWaiting) -> LinkView {
        let row = LinkView {
            topic: Some(self.topic.clone()),
            subscription: Some(self.name.clone()),
            ..row
        };
        if self.link.as_ref() != Some(link) {
            return row.with_held_objects(0);
        }
        let row = LinkView {
            waiting: Some(Box::new(self.waiting_count(waiting).waiting_view(None))),
            ..row
        };
        match self.state {
            LinkState::Releasing => row.with_held_objects(self.objects),
            state => LinkView {
                state,
                since: self.since,
                next_probe: None,
                ..row
            }
            .with_held_objects(self.objects),
        }
    }
}

/// Makes all rows, in their order. The key of an owner is the prefix of the objects that are held
/// for it.
pub(super) fn link_rows(
    failing: &[(DeliveryTarget, &TargetCondition)],
    owners: &BTreeMap<String, HeldSubscription>,
    waiting: &AllWaiting,
) -> Vec<LinkView> {
    let on_links = objects_on_links(owners);
    let events = events_on_links(owners, waiting);
    let known: BTreeSet<_> = failing
        .iter()
        .map(|(target, _)| target.to_string())
        .collect();
    let mut rows = Vec::new();
    for (target, condition) in failing {
        let row = LinkView::for_target(target, condition);
        match target {
            DeliveryTarget::Link(link) => {
                let events = events.get(link).copied().unwrap_or_default();
                let row = row.with_held_objects(on_links.get(link).copied().unwrap_or_default());
                rows.push(LinkView {
                    waiting: Some(Box::new(events.waiting_view(None))),
                    ..row
                });
            }
            DeliveryTarget::Subscription { link, topic, name } => {
                match owners.get(&layout::held_of(topic, name)) {
                    // What was seen of it since it was deleted is forgotten within a minute.
                    Some(owner) if owner.is_gone => {}
                    Some(owner) => rows.push(owner.merge_into_row(row, link, waiting)),
                    None => rows.push(row.with_held_objects(0)),
                }
            }
        }
    }
    rows.extend(
        owners
            .values()
            .filter(|owner| owner.has_own_row(&known))
            .map(|owner| owner.held_row(waiting)),
    );
    rows.sort_by(|one, other| row_sort_key(one).cmp(&row_sort_key(other)));
    rows
}

/// The numbers of objects that are held for the subscriptions on each link.
fn objects_on_links(owners: &BTreeMap<String, HeldSubscription>) -> BTreeMap<&Link, u32> {
    let mut links = BTreeMap::<_, u32>::new();
    for HeldSubscription { link, objects, .. } in owners.values() {
        let Some(link) = link else { continue };
        let sum = links.entry(link).or_default();
        *sum = sum.saturating_add(*objects);
    }
    links
}

/// The events that wait for the subscriptions on each link.
fn events_on_links<'a>(
    owners: &'a BTreeMap<String, HeldSubscription>,
    waiting: &AllWaiting,
) -> BTreeMap<&'a Link, WaitingCount> {
    let mut links = BTreeMap::<_, WaitingCount>::new();
    for owner in owners.values() {
        let Some(link) = &owner.link else { continue };
        links
            .entry(link)
            .or_default()
            .add(&owner.waiting_count(waiting));
    }
    links
}

/// The place of a row: a link comes before its subscriptions.
fn row_sort_key(row: &LinkView) -> (Option<&str>, LinkScope, Option<String>, Option<String>) {
    let topic = row.topic.as_ref().map(TopicName::folded);
    let name = row.subscription.as_ref().map(SubscriptionName::folded);
    (row.link.as_deref(), row.scope, topic, name)
}
