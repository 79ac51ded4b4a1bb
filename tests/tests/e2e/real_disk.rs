//! Back pressure on a real disk: a small one fills up, producers are refused before it is full, and
//! nothing that was acknowledged is lost.

use std::collections::BTreeSet;
use std::path::Path;

use posthaste_tests::api::{Answer as Answered, CLOUD_EVENT, Topic};
use posthaste_tests::disk::SmallDisk;
use posthaste_tests::endpoint::{Answer, Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

const MIB: u64 = 1024 * 1024;

/// Large enough that a poll comes before the room between High and full, 64 MB, is written.
const DISK_BYTES: u64 = 256 * MIB;

/// High is floor(100*(256 - 64)/256) = 75 per cent, Medium 73 and Normal 71; the journal's formula
/// lies above them. Delays are short, because the first answers after a restart may have one; and
/// nothing drains, which is not what this is about.
const SETTINGS: &str = "\
ResourceMonitoringInterval: 00:00:00.100
DatabaseDiskSpaceReserve: 64 MB
DatabaseCheckPointDepthMax: 8 MB
SMTPStartThrottlingDelayInterval: 00:00:00.100
SMTPStepThrottlingDelayInterval: 00:00:00.100
DrainTimeHighThreshold: 100000
DrainTimeMediumThreshold: 100000
DrainTimeNormalThreshold: 100000
";

/// Most events that are published for one thing to happen.
const EVENTS_MAX: usize = 2000;

/// Publishes, and remembers what was acknowledged.
struct Producer {
    acknowledged: BTreeSet<String>,
    count: usize,
    data_bytes: usize,
}

impl Producer {
    /// Publishes one event. Whatever the disk holds, it is accepted or refused by back pressure.
    fn publish(&mut self, topic: &Topic) -> Answered {
        self.count += 1;
        let id = self.count.to_string();
        let mut event = cloud_event(&id);
        event["data"] = json!("x".repeat(self.data_bytes));
        let answer = topic
            .send(CLOUD_EVENT, event.to_string().as_bytes())
            .expect("the server answers");
        if answer.status == 200 {
            self.acknowledged.insert(id);
        } else {
            let problem: Value = answer.json();
            assert_eq!(
                (answer.status, &problem["type"]),
                (503, &json!("urn:posthaste:problem:back-pressure"))
            );
            assert!(answer.header("retry-after").is_some(), "{problem}");
        }
        answer
    }

    /// Publishes until an answer is this, and answers what it says of the pressure.
    fn publish_until(&mut self, topic: &Topic, status: u16, pressure: &str) {
        let limit = self.count + EVENTS_MAX;
        wait_until(&format!("{status} {pressure:?}"), || {
            assert!(
                self.count < limit,
                "{EVENTS_MAX} events were answered otherwise"
            );
            let answer = self.publish(topic);
            let header = answer.header("posthaste-pressure").unwrap_or_default();
            (answer.status == status && header.starts_with(pressure)).then_some(())
        });
    }
}

fn serve(home: &Home, settings: &Path) -> Server {
    Server::start(
        home.path(),
        &[
            "--pressure-settings",
            settings.to_str().expect("the path is text"),
        ],
    )
}

fn wait_for_log(server: &Server, id: u32) {
    wait_until(&format!("the log event {id}"), || {
        let parse = |line: &String| serde_json::from_str::<Value>(line).ok();
        server
            .log()
            .iter()
            .filter_map(parse)
            .any(|line| line["id"] == id)
            .then_some(())
    });
}

/// A disk that fills up refuses producers before it is full and loses nothing.
#[test]
fn filling_disk_refuses_producers_in_time_and_loses_nothing() {
    let home = Home::new();
    let settings_folder = Home::new();
    let endpoint = Endpoint::start();
    let settings = settings_folder.path().join("pressure.yaml");
    std::fs::write(&settings, SETTINGS).unwrap();
    let disk = SmallDisk::mount(home.path(), DISK_BYTES);
    let server = serve(&home, &settings);
    // Nothing is delivered until the end, so that all of it has to survive.
    endpoint.script("/a", [Answer::Held(200)]);
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    let mut producer = Producer {
        acknowledged: BTreeSet::new(),
        count: 0,
        data_bytes: 100_000,
    };

    disk.fill_to(70);
    assert_eq!(producer.publish(&topic).status, 200);
    // Published events fill the rest, until the usual producers are refused.
    producer.publish_until(&topic, 503, "medium; resource=database-disk; ");
    wait_for_log(&server, 15_004);
    wait_for_log(&server, 15_006);
    assert!(disk.percent_used() < 80, "{} per cent", disk.percent_used());

    disk.fill_to(76);
    producer.publish_until(&topic, 503, "high; resource=database-disk; ");
    assert_eq!(
        server.api().show("/pressure")["refusedTiers"],
        json!(["internal", "standard", "bulk"])
    );

    server.kill();
    let server = serve(&home, &settings);
    let topic = server.api().topic("orders");
    producer.publish_until(&topic, 503, "high; resource=database-disk; ");

    disk.free();
    producer.publish_until(&topic, 200, "");
    wait_for_log(&server, 15_005);
    endpoint.open();
    let mut missing = producer.acknowledged;
    let mut seen = 0;
    wait_until("every event that was acknowledged", || {
        let requests = endpoint.since(seen);
        seen += requests.len();
        let delivered: BTreeSet<_> = requests.iter().flat_map(Received::ids).collect();
        missing.retain(|id| !delivered.contains(id));
        missing.is_empty().then_some(())
    });
    server.stop();
}

/// A disk too small for its formula is refused with the rule and what to set.
#[test]
fn disk_too_small_for_its_formula_is_refused_with_the_remedy() {
    let home = Home::new();
    let settings_folder = Home::new();
    let _disk = SmallDisk::mount(home.path(), 64 * MIB);
    let (code, log) = Server::fail_to_start(home.path(), &[]);
    assert_eq!(code, Some(1), "{log}");
    let rule = "a disk of 67108864 bytes is too small for the formula high = floor(100*(size - 524288000)/size)";
    assert!(log.contains(rule), "{log}");
    let remedy =
        "set PercentageDatabaseDiskSpaceUsedHighThreshold, or a smaller DatabaseDiskSpaceReserve";
    assert!(log.contains(remedy), "{log}");

    let settings = settings_folder.path().join("pressure.yaml");
    let thresholds =
        "PercentageDatabaseDiskSpaceUsedHighThreshold: 90\nDatabaseCheckPointDepthMax: 1 MB\n";
    std::fs::write(&settings, thresholds).unwrap();
    serve(&home, &settings).stop();
}

/// A `ramfs` says that it has no blocks at all, and so does a `tmpfs` without a bound.
#[test]
fn disk_that_tells_no_size_is_served_from_and_never_full() {
    let unbounded = |folder: &Path| SmallDisk::mount(folder, 0);
    for (file_system, mount) in [
        (
            "ramfs",
            &SmallDisk::mount_without_size as &dyn Fn(&Path) -> SmallDisk,
        ),
        ("tmpfs", &unbounded),
    ] {
        let home = Home::new();
        let endpoint = Endpoint::start();
        let _disk = mount(home.path());
        // The folder is made in it, so that the disk above is asked for its size too.
        let data = home.path().join("data");
        let server = Server::start(&data, &[]);
        let topic =
            server
                .api()
                .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
        topic.publish(&cloud_event("1"));
        endpoint.wait_for("/a", 1);
        let pressure = server.api().show("/pressure");
        let resources = pressure["resources"].as_array().unwrap();
        let level = |resource: &str| {
            let row = resources.iter().find(|row| row["resource"] == resource);
            row.map(|row| (row["reading"].clone(), row["level"].clone()))
        };
        for resource in ["database-disk", "log-disk"] {
            let unknown = level(resource).is_none_or(|(reading, _)| reading.is_null());
            assert!(unknown, "{file_system}: {pressure}");
        }
        // The log is written too: its store keeps some of a disk free.
        let records = || {
            let page = server.api().show("/topics/orders/events");
            (page["records"].as_array().unwrap().len() == 1).then_some(())
        };
        wait_until("the record of the attempt", records);
        let said: Vec<String> = server
            .log()
            .into_iter()
            .filter(|it| it.contains("tells no size"))
            .collect();
        assert_eq!(said.len(), 1, "{file_system}: {said:?}");
        assert!(
            server
                .log()
                .iter()
                .all(|line| !line.contains("nearly full")),
            "{file_system}"
        );
        server.stop();
    }
}

#[test]
fn refused_settings_file_is_named_before_anything_is_opened() {
    let home = Home::new();
    let settings = home.path().join("pressure.yaml");
    let data = home.path().join("data");
    std::fs::write(
        &settings,
        "SubmissionQueueHighThreshold: 20000\nSubmissionQueueHigh: 1\n",
    )
    .unwrap();
    let (code, log) =
        Server::fail_to_start(&data, &["--pressure-settings", settings.to_str().unwrap()]);
    assert_eq!(code, Some(3), "{log}");
    assert!(
        log.contains("pressure.yaml:2:1") && log.contains("unknown member `SubmissionQueueHigh`"),
        "{log}"
    );
    assert!(!data.exists());
}
