//! manage over S3 and SQS, as its Lambda function wires it.

use std::sync::Arc;

use http::HeaderValue;
use posthaste_aws::{S3Store, SqsQueue};
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{
    AddressPolicy, DeliveryLogMode, KeyDigest, PublishUrls, SenderHeaders,
};
use posthaste_manage::{
    BegunRequests, DeliveryLog, LogSettings, Manage, ManageSettings, RequestCaches,
};
use posthaste_ports::{PortBundle, QueueName};
use posthaste_services::{ActivityNotes, LinkHealth, WrongKeys};
use posthaste_simulation::refuses_bad_keys;
use posthaste_simulation::{Api, ScriptedEndpoint, finds_no_object_under_a_long_name};
use posthaste_testkit::{ManualClock, SeededEntropy};
use posthaste_tests_aws::double::Access;

use crate::world::World;

type Ports = PortBundle<
    SqsQueue<ManualClock>,
    S3Store,
    S3Store,
    S3Store,
    ScriptedEndpoint,
    ManualClock,
    SeededEntropy,
>;

/// The API of an instance that knows nothing yet.
fn api(world: &World) -> Api {
    for bucket in ["letters", "log"] {
        world.double.bucket(bucket, Access::Full);
    }
    let manage = Manage::<Ports> {
        state: world.state(),
        dead_letters: world.store("letters"),
        log: DeliveryLog::new(world.store("log")),
        deliveries: world.queue(QueueName::Deliveries),
        slow_deliveries: None,
        webhooks: world.endpoint.clone(),
        links: LinkHealth::new(
            world.state(),
            world.clock.clone(),
            HealthSettings::default(),
        ),
        activity: ActivityNotes::default(),
        clock: world.clock.clone(),
        entropy: SeededEntropy::new(1),
        admin_key: KeyDigest::for_key(""),
        wrong_keys: WrongKeys::default(),
        address_policy: AddressPolicy::default(),
        examiner: None,
        own_publish_urls: PublishUrls::default(),
        settings: ManageSettings {
            publish_url: None,
            public_url: None,
            origin: HeaderValue::from_static("posthaste.example"),
            sender_headers: SenderHeaders::default(),
            notices_topic: None,
            log: LogSettings {
                mode: DeliveryLogMode::Payloads,
                retention: None,
                delay: std::time::Duration::from_mins(1),
                gaps: Vec::new(),
            },
        },
        work: BegunRequests::default(),
        caches: RequestCaches::default(),
    };
    Api::over(Arc::new(manage))
}

#[tokio::test]
async fn bad_keys_are_the_callers_error_on_s3() {
    let world = World::start().await;
    refuses_bad_keys(&api(&world)).await;
}

#[tokio::test]
async fn long_names_are_no_objects_on_s3() {
    let world = World::start().await;
    finds_no_object_under_a_long_name(&api(&world)).await;
}

/// The timeout of manage's function in the template, in seconds.
fn function_timeout() -> u64 {
    let template = include_str!("../../../../template.yaml");
    let (_, function) = template
        .split_once("\n  ManageFunction:\n")
        .expect("the function");
    let (_, rest) = function.split_once("\n      Timeout: ").expect("a timeout");
    let digits = rest.split_whitespace().next().expect("a number");
    digits.parse().expect("a number")
}

/// A request is answered, and what it left is written down, before Lambda ends the invocation.
#[test]
fn time_limit_of_a_request_is_below_the_functions_timeout() {
    let limit = posthaste_manage::REQUEST_TIME_MAX.as_secs();
    assert_eq!((limit, function_timeout()), (25, 30));
}
