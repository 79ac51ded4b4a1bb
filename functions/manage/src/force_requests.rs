//! Requests to wake that end the holds of a subscription.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::ApiProblem;
use posthaste_core::model::SubscriptionName;
use posthaste_core::stored::{ForceRequest, TopicRecord, layout};
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::signal_wake;
use posthaste_services::update::{ObjectEdit, create_or_update};

use crate::answer::ApiError;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The requests that force subscriptions.
pub(crate) struct ForceRequests<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for ForceRequests<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
        }
    }
}

impl<P: Ports> ForceRequests<P> {
    /// Asks wake to end the holds of a subscription and to release its events. Answers the id of
    /// the request, which is that of an open one if there is one.
    pub(crate) async fn request_force(
        &self,
        record: &TopicRecord,
        name: &SubscriptionName,
    ) -> Result<String, ApiError> {
        let identity = record.identities_of(name).identity();
        let now = self.clock.now();
        let new_id = self.entropy.uuid().to_string();
        // wake may rest until it is signalled.
        signal_wake(&*self.state, now).await?;
        let key = layout::force_request_key(&record.name, name);
        let asked = create_or_update(&*self.state, &key, |open| {
            let open = open.map(|open| ForceRequest::parse(&open.bytes));
            let request = ForceRequest::asked_for(open, identity, &new_id, now);
            let id = request.id.clone().unwrap_or_default();
            Ok::<_, ApiProblem>(ObjectEdit::Write(request.render(), id))
        });
        Ok(asked.await?.answer)
    }
}
