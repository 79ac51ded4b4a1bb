//! A whole server in this process: what becomes of it when a part of it ends.

mod note;
mod polls;

use super::*;
use posthaste_core::delivery_log::{LogHour, LogRecord, render_records};
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, OutgoingMessage, QueueName, QueueSender};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The longest wait of a test that fails.
const PATIENCE: Duration = Duration::from_mins(1);

fn settings(folder: &tempfile::TempDir) -> ServeSettings {
    ServeSettings {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        data_dir: folder.path().to_owned(),
        ..ServeSettings::default()
    }
}

async fn started(folder: &tempfile::TempDir) -> RunningServer {
    RunningServer::start(&settings(folder)).await.unwrap()
}

/// The error of a server that fails, within the patience.
async fn failure(app: &mut RunningServer) -> ServeError {
    tokio::time::timeout(PATIENCE, app.wait_for_failure())
        .await
        .expect("the failure is seen")
}

#[tokio::test]
async fn a_part_that_panics_is_an_error_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = started(&folder).await;
    app.tasks.spawn(async { panic!("a fault of a part") });
    let ServeError::Task(error) = failure(&mut app).await else {
        panic!("no task")
    };
    assert!(error.to_string().contains("a fault of a part"), "{error}");
    app.drain(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn a_part_that_ends_is_an_error_of_the_server_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = started(&folder).await;
    app.tasks.spawn(async {});
    assert!(matches!(failure(&mut app).await, ServeError::Ended));
    app.drain(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_gone_is_an_error_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = started(&folder).await;
    app.local.clone().close().await;
    assert!(matches!(failure(&mut app).await, ServeError::Store));
    app.drain(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn a_panic_in_the_drain_is_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = started(&folder).await;
    let stop = app.stop.clone();
    app.tasks.spawn(async move {
        stop.cancelled().await;
        panic!("a fault in the drain")
    });
    assert!(matches!(
        app.drain(PATIENCE).await,
        Err(ServeError::Task(_))
    ));
}

#[tokio::test]
async fn a_given_admin_key_is_used_and_no_other_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let settings = ServeSettings {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        data_dir: folder.path().to_owned(),
        admin_key: Some(Secret::new("given-by-the-operator")),
        ..ServeSettings::default()
    };
    let app = RunningServer::start(&settings).await.unwrap();
    assert!(app.admin_key().matches("given-by-the-operator"));
    assert!(!folder.path().join("admin.key").exists());
    app.drain(PATIENCE).await.unwrap();
}

/// The files of a folder that a person can see.
fn files(folder: &Path) -> Vec<String> {
    let found = std::fs::read_dir(folder).into_iter().flatten();
    found
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Records an attempt of this time, and returns the folder of its hour, with the file.
async fn record_at(app: &RunningServer, data: &Path, time: Timestamp) -> PathBuf {
    let record_id = "5b1f6f6a0c2d4e8f9a7b3c1d2e4f6a8b".to_owned();
    let record = LogRecord {
        record_id,
        time,
        ..LogRecord::default()
    };
    let hour = data
        .join("log")
        .join(LogHour::containing(time).key_prefix());
    let message = OutgoingMessage {
        body: render_records(&[record]).remove(0),
        group: None,
        delay: Duration::ZERO,
    };
    app.local
        .queue(QueueName::Records)
        .send_batch(vec![message])
        .await
        .unwrap();
    let written = async {
        while files(&hour).is_empty() {
            SystemClock.sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, written)
        .await
        .expect("a file");
    hour
}

#[tokio::test]
async fn records_become_a_file_of_the_delivery_log() {
    let folder = tempfile::tempdir().unwrap();
    let app = started(&folder).await;
    let hour = record_at(&app, folder.path(), SystemClock.now()).await;
    assert!(
        files(&hour).iter().all(|file| file.ends_with(".parquet")),
        "{:?}",
        files(&hour)
    );
    app.drain(PATIENCE).await.unwrap();
}
