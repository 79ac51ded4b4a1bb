//! A store, webhook client, clock and entropy that nobody can have. They stand in the types of the routes when only their
//! description is wanted, so that it is made without a running program.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::endpoint::Link;
use posthaste_core::model::time::Timestamp;
use posthaste_ports::{
    Clock, ETag, Entropy, ListPage, Object, ObjectStore, PortError, PutCondition, Revalidated, WebhookAnswer,
    WebhookClient, WebhookRequest,
};

/// Has no value, so nothing of it is ever called.
#[derive(Debug, Clone, Copy)]
pub(super) enum Nowhere {}

impl ObjectStore for Nowhere {
    async fn get(&self, _: &str) -> Result<Option<Object>, PortError> {
        match *self {}
    }

    async fn get_if_changed(&self, _: &str, _: &ETag) -> Result<Revalidated, PortError> {
        match *self {}
    }

    async fn put(&self, _: &str, _: Bytes, _: PutCondition) -> Result<ETag, PortError> {
        match *self {}
    }

    async fn delete(&self, _: &str) -> Result<(), PortError> {
        match *self {}
    }

    async fn list(&self, _: &str, _: Option<&str>, _: usize) -> Result<ListPage, PortError> {
        match *self {}
    }
}

impl WebhookClient for Nowhere {
    async fn send(&self, _: WebhookRequest) -> WebhookAnswer {
        match *self {}
    }

    fn drop_link(&self, _: &Link) {
        match *self {}
    }
}

impl Clock for Nowhere {
    fn now(&self) -> Timestamp {
        match *self {}
    }

    fn monotonic(&self) -> Duration {
        match *self {}
    }

    async fn sleep(&self, _: Duration) {
        match *self {}
    }
}

impl Entropy for Nowhere {
    fn fill(&self, _: &mut [u8]) {
        match *self {}
    }
}
