//! The queue to which an event goes that is sent again.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::release::ReplayMessage;
use posthaste_ports::{ObjectStore, OutgoingMessage, Ports, PutCondition};
use posthaste_services::send_all;

use crate::answer::{ApiError, unavailable_problem};
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The delivery queue, and the payloads that are stored beside it.
pub(super) struct ResendQueue<P: Ports> {
    state: SharedPort<P, P::Store>,
    deliveries: SharedPort<P, P::Queue>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for ResendQueue<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            deliveries: SharedPort::new(manage, |it| &it.deliveries),
        }
    }
}

impl<P: Ports> ResendQueue<P> {
    /// Queues the message, its payload first where that is stored beside it.
    pub(super) async fn queue_resend(&self, message: ReplayMessage) -> Result<(), ApiError> {
        for (key, text) in message.payloads {
            self.state.put(&key, text, PutCondition::Always).await?;
        }
        let ReplayMessage {
            body, group, delay, ..
        } = message;
        let message = OutgoingMessage {
            body,
            group: Some(group),
            delay,
        };
        match send_all(&*self.deliveries, vec![message]).await.pop() {
            Some(sent) => Ok(sent?),
            None => Err(unavailable_problem().into()),
        }
    }
}
