//! What came of a request: one outcome, or, where the receiver of a batch may say so, one for each event in it.

use posthaste_core::attempt::decide::Outcome;
use posthaste_core::attempt::partial::{Acknowledged, AnswerBody, BatchEvent, acknowledged};
use posthaste_ports::{WebhookAnswer, WebhookResponse};

use crate::intake::Planned;
use crate::invocation::Invocation;
use crate::texts::Loaded;

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Posted {
    /// What the endpoint answered to the request as a whole.
    pub(crate) outcome: Outcome,
    acknowledged: Acknowledged,
}

impl Posted {
    /// Looks into an answer of success, if its subscription allows partial acknowledgement.
    pub(crate) fn new(
        invocation: &Invocation,
        planned: &Planned,
        run: &[Loaded],
        answer: &WebhookAnswer,
        outcome: Outcome,
    ) -> Self {
        let is_asked = outcome.is_success() && planned.subscription.batching.partial_acknowledgement;
        let acknowledged = match &answer.result {
            Ok(response) if is_asked => read(invocation, planned, run, response),
            Ok(_) | Err(_) => Acknowledged::All,
        };
        Self { outcome, acknowledged }
    }

    /// The outcome of the event at this index of the request.
    pub(crate) fn of(&self, index: usize) -> Outcome {
        match self.outcome {
            Outcome::Answered { status, .. } if !self.acknowledged.includes(index) => {
                Outcome::Unacknowledged { status }
            }
            outcome => outcome,
        }
    }

    /// How many of the request's events failed, and with what outcome.
    pub(crate) fn failures(&self, events: usize) -> Option<(usize, Outcome)> {
        let failed: Vec<_> =
            (0..events).map(|index| self.of(index)).filter(|outcome| !outcome.is_success()).collect();
        failed.first().map(|outcome| (failed.len(), *outcome))
    }
}

fn read(
    invocation: &Invocation,
    planned: &Planned,
    run: &[Loaded],
    response: &WebhookResponse,
) -> Acknowledged {
    let events: Vec<_> = run.iter().map(|event| batch_event(invocation, event)).collect();
    let body = AnswerBody::new(&response.headers, &response.body, response.body_is_whole);
    let acknowledged = acknowledged(body, &events);
    if let Acknowledged::Nothing(error) = &acknowledged {
        let subscription = &planned.subscription;
        tracing::warn!(topic = %subscription.topic, subscription = %subscription.name, error = error as &dyn std::error::Error, "report of a batch not understood, its events are tried again");
    }
    acknowledged
}

fn batch_event<'a>(invocation: &'a Invocation, event: &'a Loaded) -> BatchEvent<'a> {
    let envelope = invocation.entry(event.at).envelope.as_ref();
    BatchEvent { text: &event.text, envelope_id: envelope.map(|envelope| &*envelope.id) }
}
