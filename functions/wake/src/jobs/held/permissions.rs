//! Permissions: which of a folder's deliveries may be released now, by the state of its
//! subscription, of the links of its endpoints, and by its rate. The rules are
//! [`posthaste_core::release::held`]'s.

use std::error::Error;

use posthaste_core::circuit::{CircuitDecision, DeliveryTarget};
use posthaste_core::model::{Subscription, SubscriptionStatus, Timestamp};
use posthaste_core::release::held::{at_rate, decide_release};
use posthaste_core::release::{
    EndpointStanding, HeldFolder, HeldRelease, LinkShares, ReleasePermission,
};
use posthaste_core::stored::layout;
use posthaste_ports::Ports;
use posthaste_services::RegistryError;
use posthaste_services::catch_panic::catch_panic;

use crate::ports::WakePorts;
use crate::waits;

/// Permission for a folder: nothing, where the permission cannot be found out.
pub(super) async fn for_folder<P: Ports>(
    ports: &WakePorts<P>,
    folder: &HeldFolder,
    now: Timestamp,
    shares: &LinkShares,
) -> ReleasePermission {
    let name = &folder.name;
    match catch_panic(find_permission(ports, name, now, shares)).await {
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
    ReleasePermission::without_target(HeldRelease::Nothing)
}

/// Everything in a folder that is of no subscription is released: deliver knows what to do with it.
async fn find_permission<P: Ports>(
    ports: &WakePorts<P>,
    folder: &str,
    now: Timestamp,
    shares: &LinkShares,
) -> Result<ReleasePermission, RegistryError> {
    let Some((topic, subscription)) = layout::folder_owner(folder) else {
        return Ok(permission_without_target(None, now));
    };
    let topic = ports.registry.topic(&topic).await?;
    let found = topic
        .as_ref()
        .and_then(|topic| topic.find_subscription(&subscription));
    let Some(found) = found.filter(|subscription| !subscription.lifetime.is_over(now)) else {
        return Ok(permission_without_target(None, now));
    };
    waits::note_for_subscription(ports, found, now).await;
    let status = found.status_at(now);
    if status != SubscriptionStatus::Active {
        return Ok(permission_without_target(Some(status), now));
    }
    let (target, gate) = find_target(ports, found).await;
    let recovering_since = ports.links.recovering_since(&target);
    let standing = EndpointStanding {
        gate,
        recovering_since,
        passes: shares.passes_on_link(&target),
    };
    let release = decide_release(Some(status), standing, now);
    Ok(ReleasePermission {
        release,
        target: Some(target),
        in_run_max: at_rate(found.rate, found.batching),
        own_room: usize::MAX,
    })
}

fn permission_without_target(
    status: Option<SubscriptionStatus>,
    now: Timestamp,
) -> ReleasePermission {
    ReleasePermission::without_target(decide_release(status, EndpointStanding::WELL, now))
}

/// The target to which deliver would send a subscription's deliveries: the first of its endpoints
/// whose deliveries are not held.
async fn find_target<P: Ports>(
    ports: &WakePorts<P>,
    subscription: &Subscription,
) -> (DeliveryTarget, CircuitDecision) {
    for endpoint in subscription.endpoints() {
        let target = DeliveryTarget::on_link(endpoint.link(), subscription);
        let gate = ports.links.decide(&target, true).await;
        if gate != CircuitDecision::Hold {
            return (target, gate);
        }
    }
    (
        DeliveryTarget::for_subscription(subscription),
        CircuitDecision::Hold,
    )
}
