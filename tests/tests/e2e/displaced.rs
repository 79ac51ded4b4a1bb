//! The data folder is moved, replaced or deleted under a running server: nothing is acknowledged
//! that would end with the process, and what is in the open file can be saved.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use posthaste_tests::api::CLOUD_EVENT;
use posthaste_tests::disk::SmallDisk;
use posthaste_tests::endpoint::{Answer, Endpoint};
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

const DATABASE: &str = "posthaste.redb";

/// A server on the folder `data` of a home, with a topic.
struct World {
    home: Home,
    endpoint: Endpoint,
    server: Server,
}

impl World {
    fn start() -> Self {
        Self::start_in(Home::new())
    }

    fn start_in(home: Home) -> Self {
        let endpoint = Endpoint::start();
        let server = Server::start(&home.path().join("data"), &[]);
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
        Self {
            home,
            endpoint,
            server,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn health(&self) -> u16 {
        self.server
            .api()
            .send("GET", "/health", &[], b"")
            .expect("the server answers")
            .status
    }

    fn wait_for_health(&self, status: u16) {
        wait_until(&format!("health to answer {status}"), || {
            (self.health() == status).then_some(())
        });
    }

    /// Publishes with a key that is known, because the topic's may be out of reach.
    fn publish(&self, id: &str) -> u16 {
        let topic = self.server.api().topic("orders");
        let event = cloud_event(id).to_string();
        let answer = topic.send(CLOUD_EVENT, event.as_bytes());
        answer.expect("the server answers").status
    }

    /// The lines of the log that say that the database is gone.
    fn lines(&self) -> Vec<Value> {
        let lines = self.server.log();
        let parsed = lines
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_told = |line: &Value| {
            line["message"]
                .as_str()
                .is_some_and(|text| text.starts_with("the database is not where it was opened"))
        };
        parsed.filter(is_told).collect()
    }

    /// Checks that nothing is accepted, that the log says so once, and that all else goes on.
    fn is_refused(&self) {
        self.wait_for_health(503);
        assert_eq!(self.publish("refused"), 503);
        let api = self.server.api();
        let put = api.manage("PUT", "/topics/others", Some(&json!({})));
        put.problem(503);
        assert_eq!(api.show("/topics/orders")["name"], "orders");
        let lines = self.lines();
        let [line] = &lines[..] else {
            panic!("expected one line, found {lines:?}")
        };
        assert_eq!(line["level"], "ERROR");
        assert!(
            line["open_file"]
                .as_str()
                .is_some_and(|name| Path::new(name).exists())
        );
    }
}

#[test]
fn folder_that_was_moved_away_refuses_until_it_is_back() {
    let world = World::start();
    world.endpoint.script("/a", [Answer::Held(200)]);
    assert_eq!(world.publish("before"), 200);
    fs::rename(world.path("data"), world.path("aside")).unwrap();
    world.is_refused();
    // What was accepted before is still delivered.
    world.endpoint.open();
    wait_until("the delivery", || {
        let delivered = world.server.api().delivered();
        (delivered > 0.0).then_some(())
    });
    fs::rename(world.path("aside"), world.path("data")).unwrap();
    world.wait_for_health(200);
    assert_eq!(world.publish("after"), 200);
    let ids = world
        .endpoint
        .wait_for("/a", 2)
        .into_iter()
        .flat_map(|it| it.ids());
    assert_eq!(ids.collect::<Vec<_>>(), ["before", "after"]);
    world.server.stop();
}

#[test]
fn copy_in_the_place_of_the_database_refuses() {
    let world = World::start();
    fs::copy(world.path("data").join(DATABASE), world.path("copy")).unwrap();
    fs::rename(world.path("copy"), world.path("data").join(DATABASE)).unwrap();
    world.is_refused();
}

#[test]
fn folder_that_was_deleted_and_made_again_refuses() {
    let world = World::start();
    fs::remove_dir_all(world.path("data")).unwrap();
    fs::create_dir(world.path("data")).unwrap();
    world.is_refused();
}

#[test]
fn switched_link_to_the_folder_refuses_until_it_is_back() {
    use std::os::unix::fs::symlink;
    let home = Home::new();
    for name in ["one", "two"] {
        fs::create_dir(home.path().join(name)).unwrap();
    }
    symlink("one", home.path().join("data")).unwrap();
    let world = World::start_in(home);
    let switch = |to: &str| {
        symlink(to, world.path("new")).unwrap();
        fs::rename(world.path("new"), world.path("data")).unwrap();
    };
    switch("two");
    world.is_refused();
    switch("one");
    world.wait_for_health(200);
    assert_eq!(world.publish("after"), 200);
}

#[test]
fn disk_that_was_unmounted_refuses() {
    let home = Home::new();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    let _disk = SmallDisk::mount(&data, 2 << 30);
    let world = World::start_in(home);
    let unmounted = Command::new("umount").arg("--lazy").arg(&data).status();
    assert!(unmounted.expect("there is a program umount").success());
    world.is_refused();
}

/// The way of `docs/src/operating/data-folder.md`: the open file is copied while the process stands
/// still, and a server on the copy delivers what was accepted.
#[test]
fn deleted_database_is_saved_from_the_open_file() {
    let world = World::start();
    world.endpoint.script("/a", [Answer::Held(200)]);
    assert_eq!(world.publish("kept"), 200);
    fs::remove_file(world.path("data").join(DATABASE)).unwrap();
    world.is_refused();
    let lines = world.lines();
    let open_file = lines[0]["open_file"].as_str().unwrap().to_owned();
    let pid = world.server.pid().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("there is a program kill").success());
    };
    signal("-STOP");
    fs::copy(&open_file, world.path("data").join(DATABASE)).unwrap();
    let World {
        home,
        endpoint,
        server,
    } = world;
    server.kill();
    endpoint.open();
    let server = Server::start(&home.path().join("data"), &[]);
    let ids = endpoint
        .wait_for("/a", 2)
        .into_iter()
        .flat_map(|it| it.ids());
    assert_eq!(ids.collect::<Vec<_>>(), ["kept", "kept"]);
    server.stop();
}
