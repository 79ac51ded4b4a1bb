//! The note that a server leaves for the next start.

use bytes::Bytes;
use posthaste_core::stored::ServeRun;
use posthaste_core::stored::layout::SERVE_RUN;
use posthaste_ports::{ObjectStore, PutCondition};

use super::*;

/// The data folder, once no server has it open.
async fn opened(folder: &tempfile::TempDir) -> EmbeddedStore<SystemClock> {
    let opened = async {
        loop {
            if let Ok(local) = open_store(&settings(folder)).await {
                return local;
            }
            SystemClock.sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, opened)
        .await
        .expect("the folder can be opened")
}

/// The note in a store.
async fn note(local: &EmbeddedStore<SystemClock>) -> Bytes {
    local
        .state_store()
        .get(SERVE_RUN)
        .await
        .unwrap()
        .unwrap()
        .bytes
}

#[tokio::test]
async fn note_of_a_newer_program_stays() {
    let folder = tempfile::tempdir().unwrap();
    let newer = Bytes::from_static(br#"{"v":2,"what":"it knows"}"#);
    let local = opened(&folder).await;
    let state = local.state_store();
    let put = state.put(SERVE_RUN, newer.clone(), PutCondition::Always);
    put.await.unwrap();
    local.close().await;

    let app = started(&folder).await;
    assert_eq!(note(&app.local).await, newer);
    app.drain(PATIENCE).await.unwrap();
    let local = opened(&folder).await;
    assert_eq!(note(&local).await, newer);
    local.close().await;
}

/// A supervisor starts a server again and again. None of these starts worked on anything.
#[tokio::test]
async fn start_that_fails_leaves_the_note_of_the_process_before() {
    let folder = tempfile::tempdir().unwrap();
    started(&folder).await.drain(PATIENCE).await.unwrap();
    let local = opened(&folder).await;
    let before = note(&local).await;
    assert!(ServeRun::parse(&before).unwrap().ended.is_some());
    local.close().await;

    let mut refused = settings(&folder);
    refused.monitor.pressure.tarpit.start = Duration::ZERO;
    let error = RunningServer::start(&refused).await.unwrap_err();
    assert!(matches!(error, ServeError::Pressure(_)), "{error:?}");
    let local = opened(&folder).await;
    assert_eq!(note(&local).await, before);
    local.close().await;
}

/// The log may be empty when all of it is too old. Nobody lost its files.
#[tokio::test]
async fn end_of_log_is_noted_again_after_its_newest_record_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let app = started(&folder).await;
    let now = SystemClock.now().as_millis();
    let time = Timestamp::from_millis(now - 4 * 60 * 60 * 1000);
    record_at(&app, folder.path(), time).await;
    app.note.note_log_end().await;
    app.drain(PATIENCE).await.unwrap();
    let local = opened(&folder).await;
    let end = |bytes: &Bytes| ServeRun::parse(bytes).unwrap().log_end;
    assert_eq!(end(&note(&local).await), Some(time));
    local.close().await;

    let mut short = settings(&folder);
    short.record.retention = Some(Duration::from_hours(1));
    let app = RunningServer::start(&short).await.unwrap();
    let noted = async {
        while end(&note(&app.local).await).is_some() {
            SystemClock.sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, noted)
        .await
        .expect("the log has no end");
    app.drain(PATIENCE).await.unwrap();
    opened(&folder).await.close().await;
    let app = RunningServer::start(&short).await.unwrap();
    assert_eq!(app.note.gaps().await, []);
    app.drain(PATIENCE).await.unwrap();
}
