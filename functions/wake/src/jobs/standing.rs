//! Whether a subscription is well: its endpoint takes requests, as far as the circuit knows, and
//! what was tried of late has arrived.

use posthaste_core::circuit::{DeliveryTarget, TargetCondition};
use posthaste_core::health::{HealthBook, book_key};
use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{EndpointUrl, Subscription, Timestamp};
use posthaste_core::release::recovery::{is_unprobed, is_well};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};

use crate::ports::WakePorts;

/// The standing of a subscription.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SubscriptionStanding {
    /// Whether events would arrive.
    pub(crate) is_well: bool,
    /// Whether its endpoint is not well, could be probed, and nothing does so.
    pub(crate) is_unprobed: bool,
}

/// The standing of an active subscription now.
pub(crate) async fn find_standing<P: Ports>(
    ports: &WakePorts<P>,
    book: &HealthBook,
    subscription: &Subscription,
) -> SubscriptionStanding {
    let mut standing = SubscriptionStanding::default();
    for endpoint in subscription.endpoints() {
        let conditions = read_conditions(ports, endpoint, subscription).await;
        let now = ports.clock.now();
        standing.is_well |= conditions.iter().all(|it| is_well(it.as_ref()));
        let mut ill = conditions.iter().flatten();
        standing.is_unprobed |= ill.any(|it| !is_well(Some(it)) && is_unprobed(it, now));
    }
    standing.is_well &= !has_failed_of_late(ports, book, subscription);
    standing.is_unprobed &= !standing.is_well;
    standing
}

/// Whether one of its endpoints takes requests now. It is asked before each of its sends.
pub(crate) async fn takes_requests<P: Ports>(
    ports: &WakePorts<P>,
    subscription: &Subscription,
) -> bool {
    for endpoint in subscription.endpoints() {
        let conditions = read_conditions(ports, endpoint, subscription).await;
        if conditions.iter().all(|it| is_well(it.as_ref())) {
            return true;
        }
    }
    false
}

/// Whether deliveries of a subscription are held. One of them is the probe of its endpoint, and all
/// of them go before its dead letters.
pub(crate) async fn holds_deliveries<P: Ports>(
    ports: &WakePorts<P>,
    subscription: &Subscription,
) -> Result<bool, PortError> {
    let held = layout::held_of(&subscription.topic, &subscription.name);
    let listed = ports.state.list(&held, None, 1).await?;
    Ok(!listed.objects.is_empty())
}

/// The conditions of an endpoint's link and of the subscription on it, read again if they are old.
async fn read_conditions<P: Ports>(
    ports: &WakePorts<P>,
    endpoint: &EndpointUrl,
    subscription: &Subscription,
) -> [Option<TargetCondition>; 2] {
    let target = DeliveryTarget::on_link(endpoint.link(), subscription);
    ports.links.decide(&target, true).await;
    let link = DeliveryTarget::Link(endpoint.link());
    [link, target].map(|target| ports.links.condition(&target))
}

/// Whether the subscription fails by the book of health, and was tried within the time for which it
/// must have been well. Of one that is not tried any more the book says what was.
fn has_failed_of_late<P: Ports>(
    ports: &WakePorts<P>,
    book: &HealthBook,
    subscription: &Subscription,
) -> bool {
    let settings = ports.links.settings();
    let now = ports.clock.now();
    let recover_after = whole_millis(settings.recover_after);
    let of_late = Timestamp::from_millis(now.as_millis().saturating_sub(recover_after));
    let key = book_key(&subscription.topic, &subscription.name);
    let health = book.subscription(&key);
    health.is_some_and(|health| health.has_failed_since(of_late, now, &settings.arrivals))
}
