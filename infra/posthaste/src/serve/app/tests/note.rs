//! The note that a server leaves for the next start.

use bytes::Bytes;
use posthaste_core::stored::layout::SERVE_RUN;
use posthaste_ports::{ObjectStore, PutCondition};

use super::*;

/// The note in a store.
async fn note(local: &Local<SystemClock>) -> Bytes {
    local.state().get(SERVE_RUN).await.unwrap().unwrap().bytes
}

#[tokio::test]
async fn note_of_a_newer_program_stays() {
    let folder = tempfile::tempdir().unwrap();
    let newer = Bytes::from_static(br#"{"v":2,"what":"it knows"}"#);
    let local = open(&settings(&folder)).await.unwrap();
    let put = local
        .state()
        .put(SERVE_RUN, newer.clone(), PutCondition::Always);
    put.await.unwrap();
    local.close().await;

    let app = started(&folder).await;
    assert_eq!(note(&app.local).await, newer);
    app.drain(PATIENCE).await.unwrap();
    let local = open(&settings(&folder)).await.unwrap();
    assert_eq!(note(&local).await, newer);
    local.close().await;
}
