//! Links and subscriptions that are not well, and subscriptions whose events are held: the operator's view.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use futures_util::{StreamExt, stream};
use posthaste_core::api::{
    HELD_OBJECTS_SHOWN_MAX, IsoTimestamp, LinkScope, LinkState, LinkView, LinksView, StatusState,
};
use posthaste_core::endpoint::{EndpointUrl, Link};
use posthaste_core::health::Target;
use posthaste_core::layout;
use posthaste_core::name::{SubscriptionName, TopicName};
use posthaste_core::problem::{Problem, ProblemKind};
use posthaste_core::record::TopicRecord;
use posthaste_core::time::Timestamp;
use posthaste_ports::{Clock, Entropy};

use crate::answer::{Failure, Shown, store_problem};
use crate::document::Problems;
use crate::edit::spelling;
use crate::force::links_problem;
use crate::{Manage, Managed, Store, Webhooks};

/// Most of them that are shown: an answer of Lambda has room for ten times as many.
const SHOWN_MAX: usize = 1000;

/// Most pages of what is held that are looked at. One takes S3 some 50 ms, and there is one for every subscription that
/// has a thousand objects, else one for a thousand objects.
const PAGES_MAX: usize = 100;

/// Objects on one page.
const PAGE_OBJECTS: usize = 1000;

/// Topics that are read at once.
const READS_AT_ONCE: usize = 16;

/// Whose events are held.
#[derive(Debug)]
struct Owner {
    topic: TopicName,
    name: SubscriptionName,
    /// Where its endpoint is; `None` if it was deleted.
    link: Option<Link>,
    state: LinkState,
    since: Option<IsoTimestamp>,
    objects: u32,
}

/// Show links and subscriptions that are not well
///
/// One row for each link (scheme, host and port) and each subscription that is left alone for a while because it failed,
/// or that has just recovered, and for each subscription whose events are held because it is paused or its endpoint has not
/// consented. What is well is not shown.
#[utoipa::path(get, path = "/links", tag = "status",
    responses((status = 200, description = "The links and subscriptions", body = LinksView,
        example = json!({ "links": [
            { "link": "https://billing.example.com:443", "scope": "link", "state": "retry",
              "since": "2026-11-21T10:03:00.000Z", "failingSince": "2026-11-21T10:00:00.000Z", "failures": 13,
              "lastOutcome": "SocketError", "nextProbe": "2026-11-21T10:13:00.000Z", "heldObjects": 3 },
            { "link": "https://crm.example.com:443", "scope": "subscription", "topic": "orders",
              "subscription": "crm", "state": "paused", "since": "2026-11-21T09:00:00.000Z", "heldObjects": 1 },
        ] })), Problems))]
pub(crate) async fn links<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
) -> Result<Shown<LinksView>, Failure> {
    let shards = manage.links.all().await.map_err(|error| links_problem(&error))?;
    let (held, is_whole) = manage.held().await?;
    let owners = manage.owners(held).await?;
    let failing = shards.iter().flat_map(|(_, shard)| shard.conditions());
    let mut links: Vec<_> =
        failing.map(|(target, it)| waiting(LinkView::of(&target, it), &target, &owners)).collect();
    let known: BTreeSet<_> = links.iter().filter_map(|row| row.link.clone()).collect();
    links.extend(owners.values().filter(|owner| owner.has_own_row(&known)).map(Owner::row));
    links.sort_by(|one, other| place(one).cmp(&place(other)));
    let truncated = !is_whole || links.len() > SHOWN_MAX;
    links.truncate(SHOWN_MAX);
    Ok(Shown::new(LinksView { links, truncated }))
}

/// A link comes before its subscriptions.
fn place(row: &LinkView) -> (Option<&str>, LinkScope, Option<String>, Option<String>) {
    let (topic, name) =
        (row.topic.as_ref().map(TopicName::folded), row.subscription.as_ref().map(SubscriptionName::folded));
    (row.link.as_deref(), row.scope, topic, name)
}

/// A target with what waits for it: its own, or that of every subscription on the link; and by the names as they were
/// written.
fn waiting(row: LinkView, target: &Target, owners: &BTreeMap<String, Owner>) -> LinkView {
    match target {
        Target::Link(link) => {
            let here = owners.values().filter(|owner| owner.link.as_ref() == Some(link));
            row.holding(here.fold(0, |sum, owner| sum.saturating_add(owner.objects)))
        }
        Target::Subscription { topic, name, .. } => match owners.get(&layout::held_of(topic, name)) {
            Some(Owner { topic, name, objects, .. }) => {
                LinkView { topic: Some(topic.clone()), subscription: Some(name.clone()), ..row }
                    .holding(*objects)
            }
            None => row.holding(0),
        },
    }
}

impl Owner {
    /// What is held because a link fails is shown with that link.
    fn has_own_row(&self, known: &BTreeSet<String>) -> bool {
        let is_known = self.link.as_ref().is_some_and(|link| known.contains(&link.to_string()));
        self.state != LinkState::Releasing || !is_known
    }

    fn row(&self) -> LinkView {
        LinkView::held(&self.topic, &self.name, self.link.as_ref(), self.state, self.since)
            .holding(self.objects)
    }
}

/// The owner of some held objects, as its topic's record has it; without one it was deleted.
fn owner(
    record: Option<&TopicRecord>,
    topic: TopicName,
    name: SubscriptionName,
    objects: u32,
    now: Timestamp,
) -> Owner {
    let found = record.and_then(|record| {
        let name = spelling(&record.settings, &name)?;
        Some((record, name, record.settings.subscriptions.get(name)?))
    });
    let Some((record, name, settings)) = found else {
        return Owner { topic, name, link: None, state: LinkState::Releasing, since: None, objects };
    };
    let status = settings.status.as_ref().map(|status| status.at(now));
    let state = status.as_ref().map_or(StatusState::Active, |status| status.state);
    Owner {
        topic: record.name.clone(),
        name: name.clone(),
        link: EndpointUrl::parse(&settings.endpoint.url).ok().map(|url| url.link()),
        state: state.into(),
        since: status.map(|status| status.since),
        objects,
    }
}

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// How many objects are held in each folder, and whether these are all folders. A folder that has more than are shown
    /// is not counted to its end.
    async fn held(&self) -> Result<(BTreeMap<String, u32>, bool), Problem> {
        let (mut counts, mut after) = (BTreeMap::<String, u32>::new(), None);
        for _ in 0..PAGES_MAX {
            let page = self.state.list(layout::HELD, after.as_deref(), PAGE_OBJECTS).await;
            let page = page.map_err(|error| store_problem(&error))?;
            let folders = page.objects.iter().filter_map(|object| layout::held_folder(&object.key));
            for folder in folders {
                let count = counts.entry(folder.to_owned()).or_default();
                *count = count.saturating_add(1);
            }
            let Some(next) = page.next_after else { return Ok((counts, true)) };
            // The folder that is listed last is not the last one by its name: `a.b-c/` is listed before `a.b/`.
            let last = page.objects.last().and_then(|object| layout::held_folder(&object.key));
            let is_full = |folder: &&str| counts.get(*folder).is_some_and(|it| *it >= HELD_OBJECTS_SHOWN_MAX);
            after = Some(last.filter(is_full).map_or(next, layout::held_past));
        }
        Ok((counts, false))
    }

    /// Whose these folders are, by their prefix. What lies in a folder that can be nobody's is passed over: wake releases
    /// it.
    async fn owners(&self, held: BTreeMap<String, u32>) -> Result<BTreeMap<String, Owner>, Problem> {
        let mut by_topic = BTreeMap::<String, (TopicName, Vec<(SubscriptionName, u32)>)>::new();
        for (folder, objects) in held {
            let Some((topic, name)) = layout::folder_owner(&folder) else { continue };
            by_topic.entry(topic.folded()).or_insert_with(|| (topic, Vec::new())).1.push((name, objects));
        }
        let now = self.clock.now();
        let read = |(topic, names): (TopicName, Vec<(SubscriptionName, u32)>)| async move {
            let record = match self.load(&topic).await {
                // It is logged, and must not hide the others.
                Err(problem) if problem.kind == ProblemKind::Internal => None,
                loaded => loaded?.map(|(record, _)| record),
            };
            let owned = names.into_iter().map(|(name, objects)| {
                (layout::held_of(&topic, &name), owner(record.as_ref(), topic.clone(), name, objects, now))
            });
            Ok(owned.collect::<Vec<_>>())
        };
        let mut reads = stream::iter(by_topic.into_values()).map(read).buffer_unordered(READS_AT_ONCE);
        let mut owners = BTreeMap::new();
        while let Some(owned) = reads.next().await {
            owners.extend(owned?);
        }
        Ok(owners)
    }
}
