#![doc = include_str!("../README.md")]

use posthaste_tests::api::Topic;
use posthaste_tests::endpoint::{Endpoint, Received};
use posthaste_tests::events::subscription_with;
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// The path of the endpoint that the subscription of [`World::topic`] names.
pub const HOOK: &str = "/hook";

/// The name of the topic of [`World::topic`].
pub const TOPIC: &str = "orders";

/// The name of its subscription.
pub const SUBSCRIPTION: &str = "billing";

/// The address that the server of [`World::reachable`] gives to endpoints. Tests call its URLs by
/// their path.
pub const PUBLIC_URL: &str = "https://posthaste.example.com";

/// The name of the server of [`World::reachable`].
pub const ORIGIN: &str = "eventemitter.example.com";

/// A server on a data folder of its own, and an endpoint.
#[derive(Debug)]
pub struct World {
    /// The program.
    pub server: Server,
    /// The receiver.
    pub endpoint: Endpoint,
    /// The folder of the program.
    pub home: Home,
}

impl World {
    /// Starts both.
    pub fn new() -> Self {
        let home = Home::new();
        Self {
            server: home.serve(),
            endpoint: Endpoint::start(),
            home,
        }
    }

    /// Starts both; the program gets its own address and the name under which it sends.
    pub fn reachable() -> Self {
        let home = Home::new();
        let arguments = ["--public-url", PUBLIC_URL, "--webhook-origin", ORIGIN];
        Self {
            server: Server::start(home.path(), &arguments),
            endpoint: Endpoint::start(),
            home,
        }
    }

    /// The settings of a subscription to [`HOOK`] whose failed attempts are made again at once and
    /// whose dead letters are written at once, with `more` laid over them.
    pub fn subscription(&self, more: &Value) -> Value {
        let mut settings = subscription_with(&self.endpoint.url(HOOK), more);
        if more["retryPolicy"]["schedule"].is_null() {
            settings["retryPolicy"]["schedule"] = json!(["PT0S"]);
        }
        settings
    }

    /// A topic of this input schema with one subscription.
    pub fn topic(&self, input_schema: &str, more: &Value) -> Topic {
        let subscriptions = json!({ SUBSCRIPTION: self.subscription(more) });
        let settings = json!({ "inputSchema": input_schema, "subscriptions": subscriptions });
        self.server.api().create_topic(TOPIC, &settings)
    }

    /// The request that one CloudEvent becomes for a subscription with these members.
    pub fn deliver(&self, event: &Value, more: &Value) -> Received {
        self.topic("CloudEvents", more).publish(event);
        self.endpoint.wait_for_one(HOOK)
    }

    /// The request that a batch of CloudEvents becomes for a subscription with these members.
    pub fn deliver_batch(&self, events: &[Value], more: &Value) -> Received {
        self.topic("CloudEvents", more).publish_batch(events);
        self.endpoint.wait_for_one(HOOK)
    }

    /// The request that Event Grid events become for a subscription with these members.
    pub fn deliver_event_grid(&self, events: &[Value], more: &Value) -> Received {
        let topic = self.topic("EventGrid", more);
        let body = Value::from(events).to_string();
        topic
            .send("application/json", body.as_bytes())
            .expect("the server answers")
            .expect(200);
        self.endpoint.wait_for_one(HOOK)
    }

    /// The request that one custom event becomes, on a topic with this mapping, for a subscription
    /// with these members.
    pub fn deliver_custom(&self, event: &Value, mapping: &Value, more: &Value) -> Received {
        let subscriptions = json!({ SUBSCRIPTION: self.subscription(more) });
        let settings = json!({ "inputSchema": "Custom", "inputMapping": mapping, "subscriptions": subscriptions });
        let topic = self.server.api().create_topic(TOPIC, &settings);
        topic
            .send("application/json", event.to_string().as_bytes())
            .expect("the server answers")
            .expect(200);
        self.endpoint.wait_for_one(HOOK)
    }

    /// Waits until so many events count as delivered. A request that is seen is not yet judged, so
    /// a test for an absent effect has to wait for the expected one first.
    pub fn wait_for_successes(&self, count: u32) {
        wait_until(&format!("{count} delivered events"), || {
            (self.server.api().delivered() >= f64::from(count)).then_some(())
        });
    }

    /// The only dead letter of the subscription.
    pub fn dead_letter(&self) -> Value {
        self.home.wait_for_dead_letter(TOPIC, SUBSCRIPTION)
    }

    /// The subscription as the API shows it.
    pub fn shown(&self) -> Value {
        self.server
            .api()
            .show(&format!("/topics/{TOPIC}/subscriptions/{SUBSCRIPTION}"))
    }

    /// Writes a subscription of a new topic, and answers the problem (RFC 9457) that refuses it.
    pub fn refusal(&self, more: &Value) -> Value {
        let settings = json!({ "subscriptions": { SUBSCRIPTION: self.subscription(more) } });
        self.server
            .api()
            .manage("PUT", "/topics/refused", Some(&settings))
            .problem(400)
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}
