//! The endpoints of the outage: what each answers, and what that means for its events.

use std::time::Duration;

use posthaste_core::model::{CertificateFault, SendFailure, Timestamp};
use posthaste_simulation::{Answer, Request, World};
use serde_json::{Value, json};

/// A subscription with a host of its own.
pub(super) struct Endpoint {
    pub(super) name: &'static str,
    /// The answer while the outage lasts.
    answer: Answer,
    /// The words for its health at the end of the outage, one of which is shown.
    pub(super) health: &'static [&'static str],
    /// Whether it is well after the outage.
    pub(super) recovers: bool,
}

/// The ten kinds.
pub(super) fn all() -> [Endpoint; 10] {
    let endpoint = |name, answer| Endpoint {
        name,
        answer,
        health: match name {
            "healthy" | "slow" => &["healthy"],
            "flapping" => &["healthy", "failing", "down"],
            GONE => &["disabled"],
            _ => &["failing", "down"],
        },
        recovers: name != GONE,
    };
    let certificate = SendFailure::Certificate(CertificateFault::OtherName);
    [
        endpoint("healthy", Answer::Status(204)),
        endpoint("erring", Answer::Status(500)),
        endpoint("refusing", Answer::Status(400)),
        endpoint(GONE, Answer::Status(410)),
        endpoint("slow", Answer::SlowBy(SLOW_BY, |_| 204)),
        endpoint(
            "redirecting",
            Answer::With(302, "location", "https://elsewhere.example.com/"),
        ),
        endpoint("nobody", Answer::Failure(SendFailure::Refused)),
        endpoint("flapping", Answer::By(flapping)),
        endpoint("hanging", Answer::Hangs),
        endpoint("untrusted", Answer::Failure(certificate)),
    ]
}

/// The endpoint that is gone, and stays gone.
pub(super) const GONE: &str = "gone";

/// Longer than a step, so that requests are under way while figures are read.
const SLOW_BY: Duration = Duration::from_secs(25);

fn flapping(_: &str, at: Timestamp) -> u16 {
    if at.minute_rounded_down().is_multiple_of(2) {
        503
    } else {
        204
    }
}

impl Endpoint {
    pub(super) fn host(&self) -> String {
        format!("{}.example.com", self.name)
    }

    /// One of them has waits so long that its events are parked.
    pub(super) fn retry_policy(&self) -> Value {
        if self.name == "flapping" {
            json!({ "schedule": ["PT20M"] })
        } else {
            json!({})
        }
    }

    pub(super) fn fail(&self, world: &World) {
        world.endpoint.answer_at(self.host(), self.answer.clone());
    }

    pub(super) fn recover(&self, world: &World) {
        if self.recovers {
            world.endpoint.answer_at(self.host(), Answer::Status(204));
        }
    }

    /// Whether a request that was sent in the outage, or after it, is one that the endpoint takes.
    pub(super) fn takes(&self, request: &Request, is_outage: bool) -> bool {
        match (&self.answer, is_outage) {
            (_, false) => self.recovers,
            (Answer::By(status), true) => status(&request.body, request.at) < 300,
            (Answer::Status(status), true) => *status < 300,
            (Answer::SlowBy(..), true) => true,
            (_, true) => false,
        }
    }
}
