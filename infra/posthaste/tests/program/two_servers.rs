//! The command line where one server manages topics and another one takes their events, as on AWS:
//! the two functions themselves, each on a port of its own, over one store.

use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{failure, posthaste, run_with};
use axum::Router;
use axum::http::HeaderValue;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{
    AddressPolicy, DeliveryLogMode, KeyDigest, PublishUrls, SenderHeaders,
};
use posthaste_http::{ClientSettings, HyperWebhookClient};
use posthaste_local::{EmbeddedStore, FileStore, LocalOptions, LocalQueue, StateStore};
use posthaste_manage::{
    BegunRequests, DeliveryLog, LogSettings, Manage, ManageSettings, RequestCaches,
};
use posthaste_ports::{PortBundle, QueueName, QueueReceiver};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, LinkHealth, PressureReader, TopicRegistry};
use posthaste_system::{SystemClock, SystemEntropy};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const ADMIN_KEY: &str = "the-admin-key-of-tests";
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/t","type":"a.b"}"#;
const TOPICS: &str = "topics:\n  orders:\n    subscriptions:\n      billing: { endpoint: { url: 'https://a.example/' } }\n";

/// The two servers. They end with the runtime.
struct Deployed {
    manage_url: String,
    publish_url: String,
    local: EmbeddedStore<SystemClock>,
    runtime: Runtime,
    folder: TempDir,
}

type Queue = LocalQueue<SystemClock>;
type Webhooks = HyperWebhookClient<SystemClock>;
type Embedded =
    PortBundle<Queue, StateStore, FileStore, FileStore, Webhooks, SystemClock, SystemEntropy>;

impl Deployed {
    /// Starts both, with the topic `orders`.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::new().unwrap();
        let local = EmbeddedStore::open(
            folder.path(),
            LocalOptions::default(),
            SystemClock,
            SystemEntropy,
        )
        .unwrap();
        let publish_url = listen(&runtime, publish(&local));
        let bucket = FileStore::open(&folder.path().join("dead-letters")).unwrap();
        let manage = Manage::<Embedded> {
            state: local.state_store(),
            links: LinkHealth::new(local.state_store(), SystemClock, HealthSettings::default()),
            dead_letters: bucket,
            log: DeliveryLog::new(FileStore::open(&folder.path().join("log")).unwrap()),
            deliveries: local.queue(QueueName::Deliveries),
            slow_deliveries: None,
            webhooks: HyperWebhookClient::new(ClientSettings::default(), SystemClock).unwrap(),
            clock: SystemClock,
            entropy: SystemEntropy,
            admin_key: KeyDigest::for_key(ADMIN_KEY),
            wrong_keys: posthaste_services::WrongKeys::default(),
            activity: ActivityNotes::default(),
            address_policy: AddressPolicy::default(),
            examiner: None,
            own_publish_urls: PublishUrls::default().with_base(Some(publish_url.parse().unwrap())),
            settings: ManageSettings {
                publish_url: Some(publish_url.parse().unwrap()),
                public_url: None,
                origin: HeaderValue::from_static("posthaste"),
                sender_headers: SenderHeaders::default(),
                notices_topic: None,
                log: LogSettings {
                    mode: DeliveryLogMode::default(),
                    retention: None,
                    delay: Duration::from_secs(5),
                    gaps: Vec::new(),
                },
            },
            work: BegunRequests::default(),
            caches: RequestCaches::default(),
        };
        let manage_url = listen(&runtime, posthaste_manage::router(Arc::new(manage)));
        let deployed = Self {
            manage_url,
            publish_url,
            local,
            runtime,
            folder,
        };
        deployed.manage(&["apply", "-f", "-", "--key", ADMIN_KEY], TOPICS);
        deployed
    }

    /// Runs a command against the managing server, which must succeed.
    fn manage(&self, arguments: &[&str], input: &str) -> Value {
        let output = run_with(
            &[arguments, &["--json", "--url", &self.manage_url]].concat(),
            input,
        );
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn publish(url: &str, keys: &[&str]) -> Output {
        run_with(
            &[&["publish", "orders", "-f", "-", "--url", url], keys].concat(),
            EVENT,
        )
    }

    fn publish_key(&self) -> String {
        let keys = self.manage(&["topics", "keys", "orders", "--key", ADMIN_KEY], "");
        keys["key2"].as_str().unwrap().to_owned()
    }

    fn deliveries(&self) -> u64 {
        self.runtime
            .block_on(self.local.queue(QueueName::Deliveries).counts())
            .unwrap()
            .visible
    }
}

fn publish(local: &EmbeddedStore<SystemClock>) -> Router {
    posthaste_publish::router(Arc::new(Publish::<Embedded> {
        deliveries: local.queue(QueueName::Deliveries),
        slow_lane: None,
        records: Some(local.queue(QueueName::Records)),
        registry: TopicRegistry::new(local.state_store(), SystemClock, Duration::ZERO),
        payloads: local.state_store(),
        pressure: PressureReader::new(local.state_store(), SystemClock, Duration::ZERO),
        clock: SystemClock,
        entropy: SystemEntropy,
        activity: ActivityNotes::default(),
        bodies: BodyBudget::new(16_000_000),
        advice: TarpitTurns::default(),
        wrong_keys: posthaste_services::WrongKeys::default(),
        traces: posthaste_services::EventTraces::default(),
        settings: PublishSettings::default(),
    }))
}

fn listen(runtime: &Runtime, router: Router) -> String {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(async move { axum::serve(listener, router).await });
    url
}

#[test]
fn with_the_admin_key_an_event_goes_where_the_topic_says() {
    let deployed = Deployed::start();
    let output = Deployed::publish(&deployed.manage_url, &["--admin-key", ADMIN_KEY]);
    assert!(output.status.success(), "{}", failure(&output).1);
    assert_eq!(deployed.deliveries(), 1);
    let key = deployed.publish_key();
    let output = Deployed::publish(
        &deployed.manage_url,
        &["--admin-key", ADMIN_KEY, "--key", &key],
    );
    assert!(output.status.success(), "{}", failure(&output).1);
    let output = Deployed::publish(
        &deployed.manage_url,
        &["--admin-key", ADMIN_KEY, "--key", "wrong"],
    );
    assert_eq!((failure(&output).0, deployed.deliveries()), (5, 2));
}

#[test]
fn a_publish_key_alone_opens_the_server_that_is_named() {
    let deployed = Deployed::start();
    let key = deployed.publish_key();
    let output = Deployed::publish(&deployed.publish_url, &["--key", &key]);
    assert!(output.status.success(), "{}", failure(&output).1);
    // manage has the events of a topic too, but to read.
    let output = Deployed::publish(&deployed.manage_url, &["--key", &key]);
    assert_eq!((failure(&output).0, deployed.deliveries()), (3, 1));
}

/// Publish key sends the events to the named server, whatever admin key the environment has.
#[test]
fn publish_key_overrides_an_admin_key_of_the_environment() {
    let deployed = Deployed::start();
    let key = deployed.publish_key();
    let publish = |variables: &[(&str, &str)], more: &[&str]| {
        let file = deployed.folder.path().join("event.json");
        std::fs::write(&file, EVENT).unwrap();
        let file = file.to_str().unwrap();
        let common = [
            "publish",
            "orders",
            "-f",
            file,
            "--url",
            &deployed.publish_url,
        ];
        let mut command = posthaste(&[&common[..], more].concat());
        failure(
            &command
                .env("POSTHASTE_KEY", ADMIN_KEY)
                .envs(variables.iter().copied())
                .output()
                .unwrap(),
        )
    };
    assert_eq!(publish(&[], &["--key", &key]), (0, String::new()));
    assert_eq!(
        publish(&[("POSTHASTE_PUBLISH_KEY", &key)], &[]),
        (0, String::new())
    );
    assert_eq!(
        publish(&[], &["--key", &key, "--rate", "auto", "--json"]).0,
        0
    );
    assert_eq!(deployed.deliveries(), 3);
    // The address that takes events manages no topic.
    assert_eq!(
        publish(&[], &["--key", &key, "--admin-key", ADMIN_KEY]).0,
        4
    );
}

#[test]
fn every_other_command_asks_the_server_that_manages() {
    let deployed = Deployed::start();
    let endpoint = format!("{}/topics/orders/events", deployed.publish_url);
    let shown = deployed.manage(&["topics", "show", "orders", "--key", ADMIN_KEY], "");
    assert_eq!(shown["endpoint"], endpoint);
    let output = run_with(
        &[
            "topics",
            "show",
            "orders",
            "--key",
            ADMIN_KEY,
            "--url",
            &deployed.manage_url,
        ],
        "",
    );
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains(&format!("publish to {endpoint}\n"))
    );
    let again = deployed.manage(&["apply", "-f", "-", "--key", ADMIN_KEY], TOPICS);
    assert_eq!(again["applied"][0]["change"], "unchanged");
    assert_eq!(
        deployed.manage(&["pressure", "--key", ADMIN_KEY], "")["level"],
        "normal"
    );
    let letters = deployed.manage(
        &[
            "dead-letters",
            "list",
            "orders",
            "billing",
            "--key",
            ADMIN_KEY,
        ],
        "",
    );
    assert_eq!(letters["deadLetters"], serde_json::json!([]));
}
