//! The place that takes a topic's events, and the key to it.

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::api::{TopicKeysView, TopicSettings};
use posthaste_core::model::time::format_duration;
use posthaste_core::model::{Secret, Timestamp};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use ureq::http::Method;

use crate::cli::{DeclaredTier, GlobalOptions, PublishArgs};
use crate::client::{ApiCall, ClientError, ClientResponse, PUBLISH_TIMEOUT, ServerClient};
use crate::commands::AdminSession;
use crate::commands::session::given_key;
use crate::error::CommandError;
use crate::output::api_word;

/// The endpoint of one topic and its key. A server that manages topics need not be the one that
/// takes their events: deployed on AWS, each of the two functions has a URL of its own. Clones are
/// cheap.
#[derive(Debug, Clone)]
pub(super) struct PublishTarget {
    client: ServerClient,
    topic: String,
    /// True if the client's address is the topic's endpoint, false if it is a server's.
    is_endpoint: bool,
    key: Arc<Secret>,
    tier: Option<DeclaredTier>,
    time_to_live: Option<Duration>,
    not_before: Option<Timestamp>,
}

impl PublishTarget {
    /// The target that these arguments name. With only the topic's key (an admin key of the
    /// environment does not count beside it) it is the server itself. Otherwise the server is
    /// asked for the topic's endpoint, and for the first of its two keys if none was given.
    pub(super) fn find(
        global: &GlobalOptions,
        arguments: &PublishArgs,
    ) -> Result<Self, CommandError> {
        let key = given_key(arguments.key.as_deref())?;
        let admin_key = given_key(arguments.admin_key.as_deref())?;
        let (client, is_endpoint, key) = match (key, admin_key) {
            (Some(key), None) => {
                let authorities = global.ca_cert.as_deref();
                let client = ServerClient::with_authorities(&global.url, authorities)?;
                (client, false, key)
            }
            (key, admin_key) => {
                let admin_key = admin_key.map(|key| key.expose().to_owned());
                ask_server(
                    &AdminSession::open(global, admin_key.as_deref())?,
                    &arguments.topic,
                    key,
                )?
            }
        };
        let PublishArgs {
            topic,
            tier,
            time_to_live,
            not_before,
            ..
        } = arguments;
        let topic = topic.clone();
        let tier = *tier;
        let time_to_live = *time_to_live;
        let not_before = not_before.map(|time| time.resolve(SystemClock.now()));
        Ok(Self {
            client,
            topic,
            is_endpoint,
            key: Arc::new(key),
            tier,
            time_to_live,
            not_before,
        })
    }

    /// Publishes a request; one with a name is published once, however often it is sent.
    pub(super) fn post(
        &self,
        content_type: &str,
        name: Option<String>,
        bytes: Vec<u8>,
    ) -> Result<ClientResponse, ClientError> {
        self.client.send(self.call(content_type, name, bytes))
    }

    fn call<'a>(
        &'a self,
        content_type: &'a str,
        name: Option<String>,
        bytes: Vec<u8>,
    ) -> ApiCall<'a> {
        let path: &[&str] = if self.is_endpoint {
            &[]
        } else {
            &["topics", &self.topic, "events"]
        };
        let call = ApiCall::new(Method::POST, path)
            .key(&self.key)
            .body(content_type, bytes);
        let call = call.header(posthaste_publish::IDEMPOTENCY_KEY_HEADER, name);
        let time_to_live = self.time_to_live.map(format_duration);
        let call = call.header(posthaste_publish::TIME_TO_LIVE_HEADER, time_to_live);
        let not_before = self.not_before.map(|time| time.to_string());
        let call = call.header(posthaste_publish::NOT_BEFORE_HEADER, not_before);
        call.header(
            posthaste_publish::TIER_HEADER,
            self.tier.as_ref().map(api_word),
        )
        .timeout(PUBLISH_TIMEOUT)
    }
}

fn ask_server(
    session: &AdminSession,
    topic: &str,
    key: Option<Secret>,
) -> Result<(ServerClient, bool, Secret), ClientError> {
    let view: TopicSettings = session.request_json(Method::GET, &["topics", topic])?;
    let key = if let Some(key) = key {
        key
    } else {
        let keys: TopicKeysView = session.request_json(Method::GET, &["topics", topic, "keys"])?;
        Secret::new(keys.key1.expose())
    };
    Ok(match view.endpoint {
        Some(endpoint) => (session.client.for_other_server(&endpoint)?, true, key),
        None => (session.client.clone(), false, key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::pressure::TARPIT_LIMIT;

    #[test]
    fn publish_timeout_is_longer_than_any_tarpit() {
        let target = PublishTarget {
            client: ServerClient::new("http://127.0.0.1:1").unwrap(),
            topic: "orders".to_owned(),
            is_endpoint: false,
            key: Arc::new(Secret::new("k")),
            tier: None,
            time_to_live: None,
            not_before: None,
        };
        let timeout = target.call("application/json", None, Vec::new()).longest();
        assert!(timeout > TARPIT_LIMIT, "{timeout:?} for {TARPIT_LIMIT:?}");
    }
}
