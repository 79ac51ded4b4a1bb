//! A copy of the database while it is written to: it is what the store was at one moment.

use std::io;
use std::path::Path;

use bytes::Bytes;
use posthaste_ports::{ObjectStore, PutCondition, QueueName, QueueReceiver, QueueSender};
use posthaste_system::{SystemClock, SystemEntropy};

use super::device::Device;
use super::{ask, drain, message, open};
use crate::embedded::disk::ENGINE_FILE;
use crate::embedded::row::write_end;
use crate::{
    CopyCounts, EmbeddedStore, LocalOptions, OpenError, RebuildError, Snapshot, SnapshotError,
    check_folder, rebuild_database,
};

fn open_folder(dir: &Path) -> EmbeddedStore<SystemClock> {
    EmbeddedStore::open(dir, LocalOptions::default(), SystemClock, SystemEntropy).unwrap()
}

async fn send(local: &EmbeddedStore<impl posthaste_ports::Clock>, body: &str) {
    let queue = local.queue(QueueName::Deliveries);
    let sent = queue.send_batch(vec![message(body)]).await.unwrap();
    assert!(sent.iter().all(Result::is_ok));
}

async fn put(local: &EmbeddedStore<SystemClock>, key: &str, bytes: &'static [u8]) {
    let bytes = Bytes::from_static(bytes);
    let put = local
        .state_store()
        .put(key, bytes, PutCondition::Always)
        .await;
    put.unwrap();
}

fn rows(snapshot: &Snapshot) -> Vec<u8> {
    let mut rows = Vec::new();
    snapshot.write_to(&mut rows).unwrap();
    rows
}

/// The bodies that can be received from the queue of deliveries.
async fn bodies(local: &EmbeddedStore<SystemClock>) -> Vec<String> {
    let queue = local.queue(QueueName::Deliveries);
    let mut bodies = Vec::new();
    loop {
        let received = queue.receive(ask(10)).await.unwrap();
        if received.is_empty() {
            bodies.sort();
            return bodies;
        }
        bodies.extend(received.iter().map(super::text));
    }
}

#[tokio::test]
async fn copy_has_all_of_its_moment_and_nothing_of_later() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    let to = folder.path().join("to");
    let local = open_folder(&from);
    send(&local, "one").await;
    send(&local, "two").await;
    put(&local, "topics/a.json", b"first").await;
    let snapshot = local.snapshot().unwrap();
    send(&local, "three").await;
    put(&local, "topics/a.json", b"second").await;
    let queue = local.queue(QueueName::Deliveries);
    let received = queue.receive(ask(1)).await.unwrap();
    queue.acknowledge(&received[0].receipt).await.unwrap();
    let rows = rows(&snapshot);
    drop(snapshot);
    std::fs::create_dir(&to).unwrap();
    let copied = rebuild_database(&to, &mut &rows[..]).unwrap();
    let expected = CopyCounts {
        messages: 2,
        objects: 1,
    };
    assert_eq!(copied, expected);
    local.close().await;

    let report = check_folder(&to).unwrap();
    assert_eq!((report.messages, report.objects, report.damages), (2, 1, 0));
    let copy = open_folder(&to);
    let object = copy
        .state_store()
        .get("topics/a.json")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(object.bytes, b"first"[..]);
    assert_eq!(bodies(&copy).await, ["one", "two"]);
    // Numbers continue where they were: no message gets the number of another.
    send(&copy, "four").await;
    assert_eq!(bodies(&copy).await, ["four"]);
}

#[tokio::test]
async fn stopped_folder_is_copied_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    let to = folder.path().join("to");
    let local = open_folder(&from);
    send(&local, "one").await;
    let locked = Snapshot::of_stopped(&from).unwrap_err();
    assert!(matches!(locked, OpenError::Locked { .. }), "{locked}");
    local.close().await;
    let before = std::fs::read(from.join(ENGINE_FILE)).unwrap();
    let snapshot = Snapshot::of_stopped(&from).unwrap();
    // No server may begin meanwhile.
    let begun = EmbeddedStore::open(&from, LocalOptions::default(), SystemClock, SystemEntropy);
    assert!(matches!(begun.unwrap_err(), OpenError::Locked { .. }));
    let rows = rows(&snapshot);
    drop(snapshot);
    assert!(before == std::fs::read(from.join(ENGINE_FILE)).unwrap());
    std::fs::create_dir(&to).unwrap();
    rebuild_database(&to, &mut &rows[..]).unwrap();
    assert_eq!(bodies(&open_folder(&to)).await, ["one"]);
}

#[tokio::test]
async fn rows_that_were_cut_off_make_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let local = open_folder(&folder.path().join("from"));
    for n in 0..20 {
        send(&local, &format!("message {n}")).await;
    }
    let rows = rows(&local.snapshot().unwrap());
    let to = folder.path().join("to");
    std::fs::create_dir(&to).unwrap();
    for end in [0, 1, rows.len() / 2, rows.len() - 1] {
        let error = rebuild_database(&to, &mut &rows[..end]).unwrap_err();
        assert!(matches!(error, RebuildError::Rows(_)), "{end}: {error}");
        assert!(!to.join(ENGINE_FILE).exists());
    }
    // A row that is missing in the middle shows at the end.
    let mut lacking = Vec::new();
    let whole = CopyCounts {
        messages: 1,
        objects: 0,
    };
    write_end(&mut lacking, whole).unwrap();
    let error = rebuild_database(&to, &mut &lacking[..]).unwrap_err();
    assert!(matches!(error, RebuildError::Missing { .. }), "{error}");
    assert!(!to.join(ENGINE_FILE).exists());
}

#[tokio::test]
async fn copy_fails_where_its_file_was_opened_again() {
    let device = Device::default();
    let local = open(&device);
    send(&local, "one").await;
    let snapshot = local.snapshot().unwrap();
    local.handle.shared.engine.reopen().unwrap();
    let error = snapshot.write_to(&mut io::sink()).unwrap_err();
    assert!(matches!(error, SnapshotError::Reopened), "{error}");
    let again = local.snapshot().unwrap();
    assert_eq!(again.write_to(&mut io::sink()).unwrap().messages, 1);
    assert_eq!(drain(&local, QueueName::Deliveries).await, ["one"]);
}
