//! Work that is left to wake.

use std::sync::Arc;

use axum::extract::FromRef;
use bytes::Bytes;
use posthaste_ports::{Clock, ObjectStore, PortError, Ports, PutCondition};
use posthaste_services::signal_wake;

use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The objects that ask wake for work.
pub(crate) struct WakeQueue<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for WakeQueue<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> WakeQueue<P> {
    /// Writes an object that asks wake for work. wake may rest until it is signalled, so that comes
    /// first.
    pub(crate) async fn put_work(&self, key: &str, bytes: Bytes) -> Result<(), PortError> {
        signal_wake(&*self.state, self.clock.now()).await?;
        self.state
            .put(key, bytes, PutCondition::Always)
            .await
            .map(drop)
    }
}
