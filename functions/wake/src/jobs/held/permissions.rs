//! Permissions: which of a folder's deliveries may be released now, by the state of its
//! subscription, of the links of its endpoints, and by its rate. The rules are
//! [`posthaste_core::release::held`]'s.

use std::error::Error;

use posthaste_core::circuit::{CircuitDecision, Target};
use posthaste_core::model::{Status, Subscription, Timestamp};
use posthaste_core::release::held::{at_rate, release};
use posthaste_core::release::{HeldFolder, LinkShares, Permission, Release, Standing};
use posthaste_core::stored::layout;
use posthaste_ports::Ports;
use posthaste_services::RegistryError;
use posthaste_services::catch_panic::catch_panic;

use crate::ports::WakePorts;
use crate::waits;

/// Permission for a folder: nothing, where the permission cannot be found out.
pub(super) async fn of<P: Ports>(
    ports: &WakePorts<P>,
    folder: &HeldFolder,
    now: Timestamp,
    shares: &LinkShares,
) -> Permission {
    let name = &folder.name;
    match catch_panic(find(ports, name, now, shares)).await {
        Ok(Ok(permission)) => return permission,
        Ok(Err(error)) => {
            let error = &error as &dyn Error;
            tracing::error!(
                folder = %name, error, "held deliveries not released: their topic cannot be read"
            );
        }
        Err(_) => {
            tracing::error!(folder = %name, "held deliveries not released: the look at their topic panicked");
        }
    }
    Permission::without_target(Release::Nothing)
}

/// Everything in a folder that is of no subscription is released: deliver knows what to do with it.
async fn find<P: Ports>(
    ports: &WakePorts<P>,
    folder: &str,
    now: Timestamp,
    shares: &LinkShares,
) -> Result<Permission, RegistryError> {
    let without_target = |status| Permission::without_target(release(status, Standing::WELL, now));
    let Some((topic, subscription)) = layout::folder_owner(folder) else {
        return Ok(without_target(None));
    };
    let topic = ports.registry.topic(&topic).await?;
    let found = topic
        .as_ref()
        .and_then(|topic| topic.subscription(&subscription));
    let Some(found) = found.filter(|subscription| !subscription.lifetime.is_over(now)) else {
        return Ok(without_target(None));
    };
    waits::note(ports, found, now).await;
    let status = found.status_at(now);
    if status != Status::Active {
        return Ok(without_target(Some(status)));
    }
    let (target, gate) = route(ports, found).await;
    let recovering_since = ports.links.recovering_since(&target);
    let standing = Standing {
        gate,
        recovering_since,
        passes: shares.passes(&target),
    };
    let release = release(Some(status), standing, now);
    Ok(Permission {
        release,
        target: Some(target),
        in_run_max: at_rate(found.rate, found.batching),
        own_room: usize::MAX,
    })
}

/// The target to which deliver would send a subscription's deliveries: the first of its endpoints
/// whose deliveries are not held.
async fn route<P: Ports>(
    ports: &WakePorts<P>,
    subscription: &Subscription,
) -> (Target, CircuitDecision) {
    for endpoint in subscription.endpoints() {
        let target = Target::on(endpoint.link(), subscription);
        let gate = ports.links.decide(&target, true).await;
        if gate != CircuitDecision::Hold {
            return (target, gate);
        }
    }
    (Target::of(subscription), CircuitDecision::Hold)
}
