//! Links and subscriptions that are not well, and subscriptions whose events are held: the operator's view.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use futures_util::{StreamExt, stream};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{
    HELD_OBJECTS_SHOWN_MAX, IsoTimestamp, LinkScope, LinkState, LinkView, LinksView, StatusState,
};
use posthaste_core::circuit::{Condition, Target};
use posthaste_core::model::endpoint::{EndpointUrl, Link};
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::model::time::Timestamp;
use posthaste_core::stored::layout;
use posthaste_core::stored::topic::TopicRecord;
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
    /// Where its endpoint is; `None` if it was deleted, or is not known.
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
    let failing: Vec<_> = shards.iter().flat_map(|(_, shard)| shard.conditions()).collect();
    let (mut held, is_whole) = manage.held().await?;
    // Those that fail have nothing held at first, and are to be called as they were written.
    let own = failing.iter().filter_map(|(target, _)| own_folder(target)).take(SHOWN_MAX);
    for folder in own {
        held.entry(folder).or_default();
    }
    let waiting = Waiting::of(manage.owners(held).await?);
    let known: BTreeSet<_> = failing.iter().map(|(target, _)| target.to_string()).collect();
    let mut links: Vec<_> = failing.iter().map(|(target, it)| waiting.row(target, it)).collect();
    links.extend(waiting.owners.values().filter(|owner| owner.has_own_row(&known)).map(Owner::row));
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

/// The folder of what is held for a target; `None` of a link.
fn own_folder(target: &Target) -> Option<String> {
    let Target::Subscription { topic, name, .. } = target else { return None };
    layout::held_folder(&layout::held_of(topic, name)).map(str::to_owned)
}

/// What is held, by whose it is and by where it is to go.
#[derive(Debug)]
struct Waiting {
    /// By the prefix of what is held for them.
    owners: BTreeMap<String, Owner>,
    links: BTreeMap<Link, u32>,
}

impl Waiting {
    fn of(owners: BTreeMap<String, Owner>) -> Self {
        let mut links = BTreeMap::<_, u32>::new();
        for Owner { link, objects, .. } in owners.values() {
            let Some(link) = link else { continue };
            let sum = links.entry(link.clone()).or_default();
            *sum = sum.saturating_add(*objects);
        }
        Self { owners, links }
    }

    /// A target with what waits for it: its own, or that of every subscription on the link.
    fn row(&self, target: &Target, condition: &Condition) -> LinkView {
        let row = LinkView::of(target, condition);
        match target {
            Target::Link(link) => row.holding(self.links.get(link).copied().unwrap_or_default()),
            Target::Subscription { link, topic, name } => {
                match self.owners.get(&layout::held_of(topic, name)) {
                    Some(owner) => owner.over(row, link),
                    None => row.holding(0),
                }
            }
        }
    }
}

impl Owner {
    /// What is held because a link fails is shown with that link, and what fails by itself has its row.
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

    /// The row of what is known of it on a link: in the names that were written, and where its events go there, with them
    /// and with the state that would keep them if it were well.
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

/// The owner of some held objects, as its topic's record has it; without one it was deleted, or is not known.
fn owner(
    record: Result<Option<&TopicRecord>, Unread>,
    topic: TopicName,
    name: SubscriptionName,
    objects: u32,
    now: Timestamp,
) -> Owner {
    let state = if record.is_err() { LinkState::Unknown } else { LinkState::Releasing };
    let found = record.ok().flatten().and_then(|record| {
        let name = spelling(&record.settings, &name)?;
        Some((record, name, record.settings.subscriptions.get(name)?))
    });
    let Some((record, name, settings)) = found else {
        return Owner { topic, name, link: None, state, since: None, objects };
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

/// A topic's record cannot be read, and waiting does not mend it.
#[derive(Debug, Clone, Copy)]
struct Unread;

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
                Err(problem) if problem.kind == ProblemKind::Internal => Err(Unread),
                loaded => Ok(loaded?.map(|(record, _)| record)),
            };
            let owned = names.into_iter().map(|(name, objects)| {
                (
                    layout::held_of(&topic, &name),
                    owner(
                        record.as_ref().map(Option::as_ref).map_err(|unread| *unread),
                        topic.clone(),
                        name,
                        objects,
                        now,
                    ),
                )
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
