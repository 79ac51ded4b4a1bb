//! The counts of what waits.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_ports::Ports;
use posthaste_services::WaitingEvents;

use crate::log_coverage::LogCoverage;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The places in which events wait: the delivery queues of both lanes, and the state store.
pub(crate) struct WaitingCounts<P: Ports> {
    deliveries: SharedPort<P, P::Queue>,
    slow_deliveries: SharedPort<P, Option<P::Queue>>,
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    coverage: LogCoverage<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for WaitingCounts<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            deliveries: SharedPort::new(manage, |it| &it.deliveries),
            slow_deliveries: SharedPort::new(manage, |it| &it.slow_deliveries),
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            coverage: LogCoverage::from_ref(manage),
        }
    }
}

impl<P: Ports> WaitingCounts<P> {
    /// The count of what waits.
    pub(crate) fn waiting_events(&self) -> WaitingEvents<'_, P::Queue, P::Store, P::Clock> {
        WaitingEvents {
            deliveries: &*self.deliveries,
            slow_deliveries: self.slow_deliveries.as_ref(),
            state: &*self.state,
            clock: &self.clock,
            recorded_until: Some(self.coverage.complete_until().0),
        }
    }

    /// Whether slow targets have a lane of their own, as on AWS.
    pub(crate) fn has_slow_lane(&self) -> bool {
        self.slow_deliveries.is_some()
    }
}
