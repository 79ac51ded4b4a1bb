//! The pressure, as the monitor wrote it last.

use std::error::Error;
use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::PressureView;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::TopicName;
use posthaste_core::pressure::{PressureState, explain_cause, replay_wait};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, ObjectStore, PortError, Ports, StoredObject};

use crate::answer::ApiError;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The end of the problem where back pressure holds the event back.
const NOTHING_SENT: &str = "nothing was sent; send the event again after the wait";

/// The reader of the pressure.
pub(crate) struct PressureReader<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    notices_topic: Option<TopicName>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for PressureReader<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            notices_topic: manage.settings.notices_topic.clone(),
        }
    }
}

impl<P: Ports> PressureReader<P> {
    /// The object of the pressure.
    pub(crate) async fn load_object(&self) -> Result<Option<StoredObject>, PortError> {
        self.state.get(PRESSURE_KEY).await
    }

    /// The pressure as users see it.
    pub(crate) async fn current_view(&self) -> Result<PressureView, PortError> {
        let object = self.load_object().await?;
        let state = object
            .map(|object| PressureState::parse(&object.bytes))
            .transpose();
        let view = match state {
            Ok(state) => PressureView::new(state.as_ref(), self.clock.now()),
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    "the pressure state cannot be used, it counts as normal"
                );
                PressureView::unreadable()
            }
        };
        Ok(PressureView {
            notices_topic: self.notices_topic.clone(),
            ..view
        })
    }

    /// Refuses where a replay of this topic would wait for back pressure. A state that cannot be
    /// used holds nobody.
    pub(crate) async fn refuse_under_pressure(&self, topic: &TopicName) -> Result<(), ApiError> {
        let object = self.load_object().await?;
        let state = object.and_then(|object| PressureState::parse(&object.bytes).ok());
        let Some(wait) = replay_wait(state.as_ref(), topic, self.clock.now()) else {
            return Ok(());
        };
        let problem = ApiProblem::new(ProblemKind::BackPressure).retry_after(wait.retry_after);
        Err(match wait.pressing {
            Some(pressing) => problem
                .under_pressure(
                    pressing.resource.resource,
                    pressing.resource.effective_level(),
                )
                .detail(format!("{}; {NOTHING_SENT}", explain_cause(&pressing))),
            None => problem.detail(NOTHING_SENT),
        }
        .into())
    }
}
