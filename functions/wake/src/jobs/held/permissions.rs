//! Permissions: which of a folder's deliveries may be released now, by the state of its subscription, of the
//! links of its endpoints, and by its rate. The rules are [`posthaste_core::release::held`]'s.

use std::error::Error;

use posthaste_core::circuit::{CircuitDecision, Target};
use posthaste_core::model::{Status, Subscription, Timestamp};
use posthaste_core::release::held::{at_rate, release};
use posthaste_core::release::{HeldFolder, LinkShares, Permission, Release, Standing};
use posthaste_core::stored::layout;
use posthaste_ports::Ports;
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::{LinkHealth, Registry, RegistryError};

use crate::waits::WaitNotes;

/// Finds out what may be released.
pub(super) struct Permissions<'a, P: Ports> {
    pub(super) registry: &'a Registry<P::Store, P::Clock>,
    pub(super) links: &'a LinkHealth<P::Store, P::Clock>,
    pub(super) waits: &'a WaitNotes<'a, P>,
}

impl<P: Ports> Permissions<'_, P> {
    /// Permission for a folder: nothing, where it cannot be found out.
    pub(super) async fn of(&self, folder: &HeldFolder, now: Timestamp, links: &LinkShares) -> Permission {
        let folder_name = &folder.name;
        match catch_panic(self.find(folder, now, links)).await {
            Ok(Ok(permission)) => return permission,
            Ok(Err(error)) => {
                let error = &error as &dyn Error;
                tracing::error!(folder = %folder_name, error, "held deliveries left, topic not read");
            }
            Err(_) => tracing::error!(folder = %folder_name, "held deliveries left, it panicked"),
        }
        Permission::without_target(Release::Nothing)
    }

    /// Everything in a folder that is of no subscription is released: deliver knows what to do with it.
    async fn find(
        &self,
        folder: &HeldFolder,
        now: Timestamp,
        links: &LinkShares,
    ) -> Result<Permission, RegistryError> {
        let without_target = |status| Permission::without_target(release(status, Standing::WELL, now));
        let Some((topic, subscription)) = layout::folder_owner(&folder.name) else {
            return Ok(without_target(None));
        };
        let topic = self.registry.topic(&topic).await?;
        let found = topic.as_ref().and_then(|topic| topic.subscription(&subscription));
        let Some(found) = found.filter(|subscription| !subscription.lifetime.is_over(now)) else {
            return Ok(without_target(None));
        };
        self.waits.note(found, now).await;
        let status = found.status_at(now);
        if status != Status::Active {
            return Ok(without_target(Some(status)));
        }
        let (target, gate) = self.route(found).await;
        let recovering_since = self.links.recovering_since(&target);
        let standing = Standing { gate, recovering_since, passes: links.passes(&target) };
        let release = release(Some(status), standing, now);
        Ok(Permission { release, target: Some(target), in_run_max: at_rate(found.rate, found.batching) })
    }

    /// The target to which deliver would send a subscription's deliveries: to the first of its endpoints that
    /// does not have them held.
    async fn route(&self, subscription: &Subscription) -> (Target, CircuitDecision) {
        for endpoint in subscription.endpoints() {
            let target = Target::on(endpoint.link(), subscription);
            let gate = self.links.decide(&target, true).await;
            if gate != CircuitDecision::Hold {
                return (target, gate);
            }
        }
        (Target::of(subscription), CircuitDecision::Hold)
    }
}
