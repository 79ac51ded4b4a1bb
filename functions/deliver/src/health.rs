//! Failing endpoints: where a request goes now, if anywhere, and what its outcome says about its link and its
//! subscription. The rules are `posthaste_core::circuit`'s, and what all workers know is the link book's; here is what one
//! worker counts for itself.
//!
//! A request is looked at when its turn is planned and again right before it is sent: those that wait for a lane of a link
//! that has just failed are not sent to it.

mod note;
mod pauses;
mod ramps;
mod route;

use parking_lot::Mutex;
use posthaste_core::circuit::{HealthSettings, Sign, Streaks, Target, is_problem};
use posthaste_core::model::delivery::Delivery;
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::Subscription;

pub(crate) use note::Made;
use pauses::Pauses;
use ramps::Ramps;
pub(crate) use route::Route;

/// What one worker counts.
#[derive(Debug, Default)]
pub(crate) struct Health {
    streaks: Mutex<Streaks>,
    ramps: Ramps,
    pauses: Pauses,
}

impl Health {
    /// Whether the last request to a subscription, or to its link, failed here.
    fn is_failing(&self, target: &Target) -> bool {
        let streaks = self.streaks.lock();
        streaks.is_failing(target) || streaks.is_failing(&Target::Link(target.link().clone()))
    }

    /// Whether a delivery's events fail where others of their subscription succeed, at either of its endpoints.
    pub(crate) fn is_problem(
        &self,
        delivery: &Delivery,
        subscription: &Subscription,
        settings: &HealthSettings,
    ) -> bool {
        let streaks = self.streaks.lock();
        let mut targets = subscription.endpoints().map(|endpoint| Target::on(endpoint.link(), subscription));
        targets.any(|target| is_problem(delivery, streaks.successes(&target), settings))
    }

    /// Counts what a request says about a target, and answers how many failures in a row that makes.
    fn count(&self, target: &Target, sign: Sign, now: Timestamp) -> u32 {
        let mut streaks = self.streaks.lock();
        match sign {
            Sign::Good => {
                streaks.succeeded(target, now);
                0
            }
            Sign::Bad => streaks.failed(target),
            Sign::Answers | Sign::Unknown => 0,
        }
    }

    /// Counts a target from the beginning: its streak was told.
    fn begin_anew(&self, target: &Target) {
        self.streaks.lock().end(target);
    }

    /// Counts a subscription and its link from the beginning: they are known not to be well, by whomever.
    fn leave_alone(&self, target: &Target) {
        let mut streaks = self.streaks.lock();
        streaks.end(target);
        streaks.end(&Target::Link(target.link().clone()));
    }
}
