//! The manage function: the ports and settings that its collaborators are made of, and its URLs.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderValue;
use posthaste_core::delivery_log::LogGap;
use posthaste_core::model::{
    AddressPolicy, DeliveryLogMode, KeyDigest, PublishUrls, SenderHeaders, TopicName,
};
use posthaste_ports::{InstallationExaminer, Ports};
use posthaste_services::{ActivityNotes, LinkHealth, WrongKeys};
use url::Url;

use posthaste_delivery_log::DeliveryLog;

use crate::begun_requests::BegunRequests;
use crate::request_caches::RequestCaches;

/// The manage function over its ports. Handlers take collaborators of it (axum's `FromRef`), which see
/// one to three of the ports each.
#[derive(Debug)]
pub struct Manage<P: Ports> {
    /// The state bucket.
    pub state: P::Store,
    /// The dead-letter bucket.
    pub dead_letters: P::DeadLetters,
    /// The delivery log.
    pub log: DeliveryLog<P::Log>,
    /// The delivery queue, for events that are sent again.
    pub deliveries: P::Queue,
    /// The delivery queue of the slow lane, where there is one, as on AWS.
    pub slow_deliveries: Option<P::Queue>,
    /// The client that calls endpoints, for handshakes and test events.
    pub webhooks: P::Webhook,
    /// The examiner of the machine or the account, and of endpoints. `None` where there is nothing
    /// to look at, as in memory.
    pub examiner: Option<Arc<dyn InstallationExaminer>>,
    /// The health of links and subscriptions.
    pub links: LinkHealth<P::Store, P::Clock>,
    /// The last use of topics and subscriptions.
    pub activity: ActivityNotes,
    /// The time.
    pub clock: P::Clock,
    /// The source of random bytes, for keys and secrets.
    pub entropy: P::Entropy,
    /// The digest of the key that opens the API.
    pub admin_key: KeyDigest,
    /// Other keys that were shown.
    pub wrong_keys: WrongKeys,
    /// The addresses that endpoints may have.
    pub address_policy: AddressPolicy,
    /// The URLs that no endpoint may have, because this installation publishes there.
    pub own_publish_urls: PublishUrls,
    /// The settings.
    pub settings: ManageSettings,
    /// The work of requests that goes on without them.
    pub work: BegunRequests,
    /// The caches that requests keep for the next ones.
    pub caches: RequestCaches,
}

/// Settings of the manage function.
#[derive(Debug, Clone)]
pub struct ManageSettings {
    /// The URL of the publish function if it has one of its own, as on AWS. Every topic shows it
    /// as its `endpoint`.
    pub publish_url: Option<Url>,
    /// The URL of this function as seen from outside, if that is known. Endpoints consent there.
    pub public_url: Option<Url>,
    /// The value of `WebHook-Request-Origin`, the same as with every delivery.
    pub origin: HeaderValue,
    /// The headers of deliveries that say who sends, of topics that do not have their own.
    pub sender_headers: SenderHeaders,
    /// The topic that gets notices about the whole installation.
    pub notices_topic: Option<TopicName>,
    /// Settings of the delivery log, as far as this function must know them.
    pub log: LogSettings,
}

/// Settings of the delivery log, as far as its readers must know them.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// The mode of topics that do not say one.
    pub mode: DeliveryLogMode,
    /// The time for which records are kept, if it is known.
    pub retention: Option<Duration>,
    /// The longest time from an attempt until the log has its record.
    pub delay: Duration,
    /// The times of which the log may lack records, the oldest first.
    pub gaps: Vec<LogGap>,
}

/// The function, as its guards receive it.
pub(crate) type ManageState<P> = State<Arc<Manage<P>>>;

/// The URL of a path below `base`, which may have a path itself, with or without a final slash.
pub(crate) fn url_below(base: &Url, segments: &[&str]) -> String {
    let mut url = base.clone();
    // An http(s) URL can always be a base, so there is always a path to extend.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_below_its_base() {
        let check = |base: &str, expected: &str| {
            assert_eq!(
                url_below(&base.parse().unwrap(), &["topics", "a b"]),
                expected
            );
        };
        check("https://a.example", "https://a.example/topics/a%20b");
        check(
            "https://a.example/base",
            "https://a.example/base/topics/a%20b",
        );
        check(
            "https://a.example/base/",
            "https://a.example/base/topics/a%20b",
        );
    }
}
