//! Failing endpoints: where a request goes now, if anywhere, and what its outcome says about its link and its
//! subscription. The rules are `posthaste_core::health`'s, and what all workers know is the link book's; here is what one
//! worker counts for itself.
//!
//! A request is looked at when its turn is planned and again right before it is sent: those that wait for a lane of a link
//! that has just failed are not sent to it.

mod note;
mod ramps;
mod route;

use std::sync::Mutex;

use posthaste_core::health::{Sign, Signs, Streaks, Target};
use posthaste_core::time::Timestamp;

use crate::invocation::lock;
use ramps::Ramps;
pub(crate) use route::Route;

/// What one worker counts.
#[derive(Debug, Default)]
pub(crate) struct Health {
    streaks: Mutex<Streaks>,
    ramps: Ramps,
}

impl Health {
    /// Whether the last request to a subscription, or to its link, failed here.
    fn is_failing(&self, target: &Target) -> bool {
        let streaks = lock(&self.streaks);
        streaks.is_failing(target) || streaks.is_failing(&Target::Link(target.link().clone()))
    }

    /// When an event of a subscription last succeeded here since one that failed.
    pub(crate) fn succeeded_at(&self, target: &Target) -> Option<Timestamp> {
        lock(&self.streaks).succeeded_at(target)
    }

    /// Counts what a request says about a target, and answers how many failures in a row that makes.
    fn count(&self, target: &Target, sign: Sign, now: Timestamp) -> u32 {
        let mut streaks = lock(&self.streaks);
        match sign {
            Sign::Good => {
                streaks.succeeded(target, now);
                0
            }
            Sign::Bad => streaks.failed(target),
            Sign::Answers | Sign::Unknown => 0,
        }
    }

    fn begin_anew(&self, target: &Target) {
        lock(&self.streaks).end(target);
    }
}

/// What a request says about one of the two.
fn sign_of(signs: Signs, target: &Target) -> Sign {
    match target {
        Target::Link(_) => signs.link,
        Target::Subscription { .. } => signs.subscription,
    }
}
