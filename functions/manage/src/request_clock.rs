//! The time of a request: the clock, and the time that its work may take.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_ports::{Clock, Ports};

use crate::manage::Manage;

/// Longest time for the work of a request's handler. It is shorter than
/// [`REQUEST_TIME_MAX`](crate::REQUEST_TIME_MAX), so that the work can still be answered.
const WORK_TIME_MAX: Duration = Duration::from_secs(23);

/// The clock, for a handler.
pub(crate) struct RequestClock<P: Ports>(P::Clock);

impl<P: Ports> FromRef<Arc<Manage<P>>> for RequestClock<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self(manage.clock.clone())
    }
}

impl<P: Ports> Deref for RequestClock<P> {
    type Target = P::Clock;

    fn deref(&self) -> &P::Clock {
        &self.0
    }
}

/// The end of the work for a request that begins now, as a time of the clock's `monotonic`.
pub(crate) fn work_ends(clock: &impl Clock) -> Duration {
    clock.monotonic() + WORK_TIME_MAX
}

/// The time left until then.
pub(crate) fn time_until(clock: &impl Clock, until: Duration) -> Duration {
    until.saturating_sub(clock.monotonic())
}
