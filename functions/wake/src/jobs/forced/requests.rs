//! The requests of operators to force subscriptions: read at the beginning of a walk, deleted or
//! written at its end.

use std::error::Error;
use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, Observation, shard_index};
use posthaste_core::model::{
    EndpointUrl, Identity, Subscription, SubscriptionName, SubscriptionStatus, Timestamp, Topic,
};
use posthaste_core::release::ForcedFolder;
use posthaste_core::stored::{ForceRequest, layout};
use posthaste_ports::{Clock, ETag, ErrorKind, ObjectStore, PortError, Ports, PutCondition};
use posthaste_services::{LinksError, RegistryError};

use crate::ports::WakePorts;
use crate::run::WakeRun;

/// Most requests that are looked at in one run.
const REQUESTS_MAX: usize = 100;

/// The time within which the write follows that a request belongs to. A request of manage ends
/// before.
const WRITE_FOLLOWS_WITHIN: Duration = Duration::from_mins(1);

type BoxError = Box<dyn Error + Send + Sync>;

/// A request that was read.
#[derive(Debug)]
pub(super) struct LoadedForceRequest {
    key: String,
    etag: ETag,
    pub(super) object: ForceRequest,
}

impl LoadedForceRequest {
    fn name(&self) -> &str {
        self.key.trim_start_matches(layout::FORCING)
    }

    /// The subscription that the request asks for.
    pub(super) fn forced_folder(&self) -> ForcedFolder {
        ForcedFolder {
            name: self.name().to_owned(),
            after: self.object.after.clone(),
        }
    }
}

/// Reads the requests. Deletes those for another creation of their subscription.
pub(super) async fn load_due<P: Ports>(
    run: WakeRun<'_, P>,
) -> Result<Vec<LoadedForceRequest>, PortError> {
    let ports = run.ports;
    let mut requests = Vec::new();
    for listed in ports
        .state
        .list(layout::FORCING, None, REQUESTS_MAX)
        .await?
        .objects
    {
        run.note_work();
        let Some(found) = ports.state.get(&listed.key).await? else {
            continue;
        };
        let object = ForceRequest::parse(&found.bytes);
        let request = LoadedForceRequest {
            key: listed.key,
            etag: found.etag,
            object,
        };
        match decide_timing(run, &request).await {
            Ok(ForceTiming::Now) => requests.push(request),
            Ok(ForceTiming::Later) => {}
            Ok(ForceTiming::Never) => delete_finished(ports, &[request]).await?,
            Err(error) => {
                let key = &request.key;
                let error = &*error;
                tracing::error!(
                    %key, error, "deliveries not forced: their topic cannot be read, the next run tries again"
                );
            }
        }
    }
    Ok(requests)
}

/// When a request is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForceTiming {
    Now,
    /// The write that it belongs to may be under way.
    Later,
    /// It is for another subscription, or the write did not happen.
    Never,
}

/// When a request is carried out. Then the holds that began before it end: its own request may have
/// died before it could end them.
async fn decide_timing<P: Ports>(
    run: WakeRun<'_, P>,
    request: &LoadedForceRequest,
) -> Result<ForceTiming, BoxError> {
    let ports = run.ports;
    if is_for_other_creation(ports, request).await? {
        return Ok(ForceTiming::Never);
    }
    let owner = layout::folder_owner(request.name());
    let Some(((topic, name), asked_at)) = owner.zip(request.object.asked_at) else {
        return Ok(ForceTiming::Now);
    };
    let now = ports.clock.now();
    let asked_after = ports.clock.monotonic();
    let mut found = ports.registry.topic(&topic).await?;
    if wants_events(found.as_deref(), &name, now) == Some(false) {
        if !run.left.counts_as_left(asked_at, now, WRITE_FOLLOWS_WITHIN) {
            return Ok(ForceTiming::Later);
        }
        found = ports
            .registry
            .topic_asked_after(&topic, asked_after)
            .await?;
        if wants_events(found.as_deref(), &name, now) == Some(false) {
            return Ok(ForceTiming::Never);
        }
    }
    if let Some(subscription) = found
        .as_ref()
        .and_then(|topic| topic.find_subscription(&name))
    {
        end_holds(ports, subscription, asked_at).await?;
    }
    Ok(ForceTiming::Now)
}

/// Ends the holds of a subscription and its links that began before this time.
async fn end_holds<P: Ports>(
    ports: &WakePorts<P>,
    subscription: &Subscription,
    asked_at: Timestamp,
) -> Result<(), LinksError> {
    let now = ports.clock.now();
    let settings = ports.links.settings();
    for link in subscription.endpoints().map(EndpointUrl::link) {
        let targets = [
            DeliveryTarget::on_link(link.clone(), subscription),
            DeliveryTarget::Link(link.clone()),
        ];
        let index = shard_index(&link);
        let changed = ports.links.change_shard(index, |shard| {
            let older = targets.iter().filter(|target| {
                let condition = shard.condition(target);
                condition.is_some_and(|it| it.since < asked_at)
            });
            let older: Vec<_> = older.collect();
            older.into_iter().fold(false, |is_changed, target| {
                shard.apply_observation(target, &Observation::Forced, now, settings) | is_changed
            })
        });
        changed.await?;
    }
    Ok(())
}

/// Tells whether the subscription that was forced is another one than is there now: its parked
/// deliveries wait for their own minute. Deliveries for a subscription that is gone may go. Before
/// a request is deleted the store is read past every cache.
async fn is_for_other_creation<P: Ports>(
    ports: &WakePorts<P>,
    request: &LoadedForceRequest,
) -> Result<bool, RegistryError> {
    let WakePorts {
        registry, clock, ..
    } = ports;
    let Some((topic, subscription)) = layout::folder_owner(request.name()) else {
        return Ok(false);
    };
    let Some(identity) = request.object.identity else {
        return Ok(false);
    };
    let now = clock.now();
    let asked_after = clock.monotonic();
    let known = registry.topic(&topic).await.ok().flatten();
    if !is_other_creation(known.as_deref(), &subscription, identity, now) {
        return Ok(false);
    }
    let found = registry.topic_asked_after(&topic, asked_after).await?;
    Ok(is_other_creation(
        found.as_deref(),
        &subscription,
        identity,
        now,
    ))
}

/// Whether a subscription that takes events stands under this name; `None` if none does.
fn wants_events(topic: Option<&Topic>, name: &SubscriptionName, now: Timestamp) -> Option<bool> {
    let subscription = topic?.find_subscription(name)?;
    Some(matches!(
        subscription.status_at(now),
        SubscriptionStatus::Active | SubscriptionStatus::Pending
    ))
}

/// Whether the subscription that is found is another creation than the one with this identity.
fn is_other_creation(
    topic: Option<&Topic>,
    name: &SubscriptionName,
    identity: Identity,
    now: Timestamp,
) -> bool {
    let subscription = topic.and_then(|topic| topic.find_subscription(name));
    subscription.is_some_and(|found| !found.created.has_accepted(Some(identity), now))
}

/// Deletes the requests whose walk has ended, but not one that was written again meanwhile.
pub(super) async fn delete_finished<P: Ports>(
    ports: &WakePorts<P>,
    requests: &[LoadedForceRequest],
) -> Result<(), PortError> {
    for LoadedForceRequest { key, etag, .. } in requests {
        if ports
            .state
            .get(key)
            .await?
            .is_some_and(|object| object.etag == *etag)
        {
            ports.state.delete(key).await?;
        }
    }
    Ok(())
}

/// Writes down how far the walk came. For a request that was written again meanwhile it begins
/// again.
pub(super) async fn save_progress<P: Ports>(
    ports: &WakePorts<P>,
    requests: Vec<LoadedForceRequest>,
    reached: Option<String>,
) -> Result<(), PortError> {
    for LoadedForceRequest { key, etag, object } in requests {
        let object = ForceRequest {
            after: reached.clone().max(object.after),
            ..object
        };
        match ports
            .state
            .put(&key, object.render(), PutCondition::IfMatch(etag))
            .await
        {
            Err(error) if error.kind != ErrorKind::PreconditionFailed => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}
