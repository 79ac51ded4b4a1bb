//! Damage on the disk: any damage ends in one clear error, or in a store that gives out only
//! messages that were sent to it and says what was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use posthaste_ports::{
    Entropy, ErrorKind, ObjectStore, PutCondition, QueueName, QueueReceiver, QueueSender,
};

use super::device::Device;
use super::{ask, message, open, to};
use crate::embedded::disk::ENGINE_FILE;
use crate::embedded::record::RecordHeader;
use crate::embedded::tables::{FOLDER, FORMAT, FORMAT_VERSION, MESSAGES};
use crate::{EmbeddedStore, LocalOptions, OpenError, check_folder};
use posthaste_system::{SystemClock, SystemEntropy};
use posthaste_testkit::SeededEntropy;

const PAGE_BYTES: usize = 4096;

fn open_folder(dir: &Path) -> Result<EmbeddedStore<SystemClock>, OpenError> {
    EmbeddedStore::open(dir, LocalOptions::default(), SystemClock, SystemEntropy)
}

/// The messages and objects that a store was given.
struct Given {
    bodies: BTreeMap<&'static str, BTreeSet<String>>,
    objects: BTreeMap<String, String>,
}

const QUEUES: [(&str, QueueName); 2] = [
    ("deliveries", QueueName::Deliveries),
    ("dead letters", QueueName::DeadLetters),
];

/// A folder with messages of all sizes and objects, closed in order.
async fn fill(dir: &Path) -> Given {
    let local = open_folder(dir).unwrap();
    let mut given = Given {
        bodies: BTreeMap::new(),
        objects: BTreeMap::new(),
    };
    for (name, queue) in QUEUES {
        for n in 0..60_usize {
            let body = format!("{name} {n} {}", "x".repeat(n * n));
            local
                .queue(queue)
                .send_batch(vec![message(body.clone())])
                .await
                .unwrap()
                .remove(0)
                .unwrap();
            given.bodies.entry(name).or_default().insert(body);
        }
    }
    for n in 0..60_usize {
        let key = format!("topics/{n:03}.json");
        let bytes = format!("object {n} {}", "y".repeat(n * n));
        let put = Bytes::from(bytes.clone());
        local
            .state_store()
            .put(&key, put, PutCondition::Always)
            .await
            .unwrap();
        given.objects.insert(key, bytes);
    }
    local.close().await;
    given
}

/// Does one of several damages to the bytes of a file.
fn damage(bytes: &mut Vec<u8>, seed: u64) {
    let chance = SeededEntropy::new(seed);
    let below = |bound: usize| {
        let mut number = [0; 8];
        chance.fill(&mut number);
        usize::try_from(u64::from_le_bytes(number) % bound as u64).unwrap()
    };
    let page = below(bytes.len() / PAGE_BYTES) * PAGE_BYTES;
    match seed % 5 {
        0 => (page..page + PAGE_BYTES).for_each(|at| bytes[at] = u8::try_from(below(256)).unwrap()),
        1 => bytes[page..page + PAGE_BYTES].fill(0),
        2 => bytes[page + below(PAGE_BYTES)] ^= 1 << below(8),
        3 => {
            let from = page + below(PAGE_BYTES - 64);
            let len = 1 + below(64);
            (from..from + len).for_each(|at| bytes[at] = u8::try_from(below(256)).unwrap());
        }
        _ => bytes.truncate(below(bytes.len())),
    }
}

/// The contents that an opened store shows: bodies and objects that were given, or an error, or
/// what is kept as damaged.
async fn is_true(local: &EmbeddedStore<SystemClock>, given: &Given, context: &str) {
    let mut whole = 0;
    for (name, queue) in QUEUES {
        for body in drain(local, queue).await {
            assert!(
                given.bodies[name].contains(&body),
                "{context}: {name} has {body:.60}"
            );
            whole += 1;
        }
    }
    let kept = drain(local, QueueName::Redrive).await;
    let kept = kept.iter().inspect(|body| {
        assert!(
            body.starts_with("posthaste: this message was damaged"),
            "{context}: {body:.60}"
        );
    });
    let all: usize = given.bodies.values().map(BTreeSet::len).sum();
    let kept = kept.count();
    // A due time that was altered makes a message wait; it is found damaged when it is received.
    let waiting = waiting(local).await;
    assert_eq!(
        whole + kept + waiting,
        all,
        "{context}: {whole} whole, {kept} kept, {waiting} waiting"
    );
    for (key, bytes) in &given.objects {
        // An error names the object.
        if let Ok(found) = local.state_store().get(key).await {
            let found =
                found.unwrap_or_else(|| panic!("{context}: {key} looks as if it had never been"));
            assert_eq!(found.bytes, bytes.as_bytes(), "{context}: {key}");
        }
    }
}

async fn waiting(local: &EmbeddedStore<SystemClock>) -> usize {
    let mut waiting = 0;
    for (_, queue) in QUEUES {
        waiting += local.queue(queue).counts().await.unwrap().delayed;
    }
    usize::try_from(waiting).unwrap()
}

/// Receives all that is visible, as text.
async fn drain(local: &EmbeddedStore<SystemClock>, queue: QueueName) -> Vec<String> {
    let mut bodies = Vec::new();
    loop {
        // A receive of damaged messages is empty although more messages follow.
        let before = local.queue(queue).counts().await.unwrap().visible;
        let received = local.queue(queue).receive(ask(10)).await.unwrap();
        bodies.extend(
            received
                .iter()
                .map(|message| String::from_utf8_lossy(&message.body).into_owned()),
        );
        if before == 0 {
            return bodies;
        }
    }
}

fn write(dir: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join(ENGINE_FILE), bytes).unwrap();
}

/// Any damage ends in a clear error, or in a store that shows only what was written.
#[tokio::test]
async fn damaged_store_fails_clearly_or_shows_only_written_data() {
    let folder = tempfile::tempdir().unwrap();
    let given = fill(&folder.path().join("whole")).await;
    let whole = std::fs::read(folder.path().join("whole").join(ENGINE_FILE)).unwrap();
    let mut refused = 0;
    let mut seen = 0;
    for seed in 0..200 {
        let mut bytes = whole.clone();
        damage(&mut bytes, seed);
        let dir = folder.path().join(seed.to_string());
        write(&dir, &bytes);
        let report = check_folder(&dir).unwrap();
        assert_eq!(
            std::fs::read(dir.join(ENGINE_FILE)).unwrap(),
            bytes,
            "{seed}: a check changes nothing"
        );
        seen += u32::from(report.damages > 0);
        match open_folder(&dir) {
            Err(error) => {
                let text = error.to_string();
                assert!(matches!(error, OpenError::Engine { .. }), "{seed}: {text}");
                assert!(
                    text.contains(dir.join(ENGINE_FILE).to_str().unwrap()),
                    "{seed}: {text}"
                );
                assert!(
                    text.contains("restore the data folder from a backup"),
                    "{seed}: {text}"
                );
                assert!(
                    report.damages > 0,
                    "{seed}: a check that saw nothing, and a start that did: {text}"
                );
                refused += 1;
            }
            Ok(local) => {
                is_true(&local, &given, &seed.to_string()).await;
                local.close().await;
            }
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
    // Both ways are taken, and what is damaged but never read (free pages) is no damage.
    assert!(
        refused > 30 && refused < 200 && seen >= refused,
        "{refused} refused, {seen} seen"
    );
}

#[tokio::test]
async fn an_empty_or_foreign_file_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = folder.path().join("foreign.redb");
    let database = redb::Database::create(&foreign).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(MESSAGES).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let foreign = std::fs::read(foreign).unwrap();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("short", b"x"),
        ("text", &[b't'; 9000]),
        ("foreign", &foreign),
    ] {
        let dir = folder.path().join(name);
        write(&dir, bytes);
        let error = open_folder(&dir).unwrap_err().to_string();
        assert!(
            error.contains("move the file away to begin with an empty store"),
            "{name}: {error}"
        );
        assert!(dir.join(ENGINE_FILE).exists());
        assert_eq!(check_folder(&dir).unwrap().damages, 1, "{name}");
    }
    assert_eq!(
        std::fs::metadata(folder.path().join("empty").join(ENGINE_FILE))
            .unwrap()
            .len(),
        0
    );
}

#[tokio::test]
async fn a_whole_folder_has_no_damage_also_after_an_end_that_was_none() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("whole");
    let copy = folder.path().join("copy");
    fill(&dir).await;
    let report = check_folder(&dir).unwrap();
    assert_eq!(
        (report.messages, report.objects, report.damages),
        (120, 60, 0),
        "{:?}",
        report.named
    );
    // A reader keeps no other reader out.
    let reader = std::fs::File::open(dir.join(ENGINE_FILE)).unwrap();
    reader.lock_shared().unwrap();
    assert_eq!(check_folder(&dir).unwrap().objects, 60);
    drop(reader);
    let local = open_folder(&dir).unwrap();
    assert!(matches!(
        check_folder(&dir).unwrap_err(),
        OpenError::Locked { .. }
    ));
    local
        .state_store()
        .put("a", Bytes::from("b"), PutCondition::Always)
        .await
        .unwrap();
    // The state that `kill -9` leaves.
    write(&copy, &std::fs::read(dir.join(ENGINE_FILE)).unwrap());
    let report = check_folder(&copy).unwrap();
    assert_eq!(
        (report.objects, report.damages),
        (61, 0),
        "{:?}",
        report.named
    );
    local.close().await;
}

/// Alters a text in a file where it is.
fn alter(path: &Path, from: &str, into: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let mut altered = 0;
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from.as_bytes()) {
            bytes[at..at + into.len()].copy_from_slice(into.as_bytes());
            altered += 1;
        }
    }
    assert!(altered > 0, "{from} is in the file");
    std::fs::write(path, bytes).unwrap();
}

/// A payload that was altered on the disk is never sent, and is kept byte for byte.
#[tokio::test]
async fn altered_payload_is_kept_byte_for_byte_and_never_sent() {
    let folder = tempfile::tempdir().unwrap();
    let local = open_folder(folder.path()).unwrap();
    let queue = local.queue(QueueName::Deliveries);
    for body in ["before", "amount: 100", "after"] {
        queue
            .send_batch(vec![message(body)])
            .await
            .unwrap()
            .remove(0)
            .unwrap();
    }
    local
        .state_store()
        .put(
            "topics/a.json",
            Bytes::from("secret: old"),
            PutCondition::Always,
        )
        .await
        .unwrap();
    local.close().await;
    alter(
        &folder.path().join(ENGINE_FILE),
        "amount: 100",
        "amount: 999",
    );
    alter(
        &folder.path().join(ENGINE_FILE),
        "secret: old",
        "secret: new",
    );
    assert_eq!(check_folder(folder.path()).unwrap().damages, 3);
    let local = open_folder(folder.path()).unwrap();
    assert_eq!(
        drain(&local, QueueName::Deliveries).await,
        ["before", "after"].map(String::from)
    );
    let kept = drain(&local, QueueName::Redrive).await;
    assert!(
        kept.len() == 1 && kept[0].starts_with("posthaste: ") && kept[0].ends_with("amount: 999")
    );
    let error = local.state_store().get("topics/a.json").await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        cause,
        "the object topics/a.json is damaged on disk: its bytes are not those that were written"
    );
    // Written again, it is whole again.
    local
        .state_store()
        .put(
            "topics/a.json",
            Bytes::from("secret: x"),
            PutCondition::Always,
        )
        .await
        .unwrap();
    assert_eq!(
        local
            .state_store()
            .get("topics/a.json")
            .await
            .unwrap()
            .unwrap()
            .bytes,
        "secret: x"
    );
    local.close().await;
}

#[tokio::test]
async fn a_kept_message_is_gone_once_it_was_written_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let local = open_folder(folder.path()).unwrap();
    let queue = local.queue(QueueName::DeadLetters);
    queue
        .send_batch(vec![message("amount: 100")])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    local.close().await;
    alter(
        &folder.path().join(ENGINE_FILE),
        "amount: 100",
        "amount: 999",
    );
    for _ in 0..2 {
        let local = open_folder(folder.path()).unwrap();
        assert!(
            local
                .queue(QueueName::DeadLetters)
                .receive(ask(10))
                .await
                .unwrap()
                .is_empty()
        );
        let redrive = local.queue(QueueName::Redrive);
        let received = redrive.receive(ask(10)).await.unwrap().remove(0);
        redrive.acknowledge(&received.receipt).await.unwrap();
        local.close().await;
        let local = open_folder(folder.path()).unwrap();
        assert_eq!(
            local
                .queue(QueueName::DeadLetters)
                .counts()
                .await
                .unwrap()
                .visible,
            0
        );
        let queue = local.queue(QueueName::DeadLetters);
        queue
            .send_batch(vec![message("amount: 100")])
            .await
            .unwrap()
            .remove(0)
            .unwrap();
        local.close().await;
        alter(
            &folder.path().join(ENGINE_FILE),
            "amount: 100",
            "amount: 999",
        );
    }
}

/// Writes the number of a folder's layout.
async fn set_format(dir: &Path, format: u64) {
    let local = open_folder(dir).unwrap();
    let transaction = local.handle.shared.engine.begin_write().unwrap();
    transaction
        .open_table(FOLDER)
        .unwrap()
        .insert(FORMAT, format)
        .unwrap();
    transaction.commit().unwrap();
    local.close().await;
}

/// A folder of a newer layout is refused with what to do, and loses nothing.
#[tokio::test]
async fn newer_folder_layout_is_refused_with_advice_and_kept_whole() {
    let folder = tempfile::tempdir().unwrap();
    let given = fill(folder.path()).await;
    set_format(folder.path(), FORMAT_VERSION + 1).await;
    for _ in 0..2 {
        let error = open_folder(folder.path()).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(
            cause,
            "the folder was written by a newer version (format 3, this one knows 2)"
        );
        let advice = "start the version of posthaste that wrote it, or a newer one";
        assert!(error.to_string().contains(advice), "{error}");
    }
    // A program that knows the format writes the number that was there before.
    let database = redb::Database::open(folder.path().join(ENGINE_FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(FOLDER)
        .unwrap()
        .insert(FORMAT, FORMAT_VERSION)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let local = open_folder(folder.path()).unwrap();
    for (name, queue) in QUEUES {
        let bodies: BTreeSet<_> = drain(&local, queue).await.into_iter().collect();
        assert_eq!(bodies, given.bodies[name]);
    }
    for (key, bytes) in &given.objects {
        assert_eq!(
            local.state_store().get(key).await.unwrap().unwrap().bytes,
            bytes.as_bytes()
        );
    }
    local.close().await;
}

/// Messages of the previous release have no digest and stay readable.
#[tokio::test]
async fn messages_of_the_previous_release_stay_readable() {
    let device = Device::default();
    let local = open(&device);
    let queue = local.queue(QueueName::Deliveries);
    queue
        .send_batch(vec![message("old")])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    let transaction = local.handle.shared.engine.begin_write().unwrap();
    {
        let mut messages = transaction.open_table(MESSAGES).unwrap();
        let old = redb::ReadableTable::first(&messages).unwrap().unwrap();
        let sequence = old.0.value();
        let record = old.1.value().to_vec();
        drop(old);
        assert_eq!(RecordHeader::read(&record).unwrap().1, b"old");
        // The record of version 1: without the digest behind the fixed part.
        let record = [&[1], &record[1..19], &record[23..]].concat();
        messages.insert(sequence, &record[..]).unwrap();
    }
    transaction.commit().unwrap();
    local.close().await;
    let local = open(&device);
    let queue = local.queue(QueueName::Deliveries);
    let received = queue.receive(ask(1)).await.unwrap().remove(0);
    assert_eq!(&received.body[..], b"old");
    queue
        .replace(&received.receipt, vec![to(QueueName::DeadLetters, "new")])
        .await
        .unwrap();
    local.close().await;
}

#[tokio::test]
async fn an_object_that_was_altered_is_an_error_or_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let keys = [
        "topics/orders.json",
        "held/a.b/1/x.json",
        "leases/wake.json",
        "links/0.json",
    ];
    let local = open_folder(folder.path()).unwrap();
    for key in keys {
        let bytes = Bytes::from(format!("what was written to {key}"));
        local
            .state_store()
            .put(key, bytes, PutCondition::Always)
            .await
            .unwrap();
    }
    local.close().await;
    let file = folder.path().join(ENGINE_FILE);
    let from = b"what was written";
    let into = b"what was altered";
    let mut bytes = std::fs::read(&file).unwrap();
    let places: Vec<_> = (0..bytes.len() - from.len())
        .filter(|at| bytes[*at..].starts_with(from))
        .collect();
    for at in places {
        bytes[at..at + into.len()].copy_from_slice(into);
    }
    std::fs::write(&file, bytes).unwrap();
    let local = open_folder(folder.path()).unwrap();
    for key in &keys[..2] {
        assert_eq!(
            local.state_store().get(key).await.unwrap_err().kind,
            ErrorKind::Damaged,
            "{key}"
        );
    }
    for key in &keys[2..] {
        assert!(
            local.state_store().get(key).await.unwrap().is_none(),
            "{key}"
        );
        local
            .state_store()
            .put(key, Bytes::from("new"), PutCondition::IfAbsent)
            .await
            .unwrap();
        assert_eq!(
            local.state_store().get(key).await.unwrap().unwrap().bytes,
            "new",
            "{key}"
        );
    }
    local.close().await;
}
