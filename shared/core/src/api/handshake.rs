//! Asking an endpoint whether it wants events, before it gets any: the abuse protection of
//! CloudEvents webhooks, and Event Grid's validation event. What is asked, what an answer means,
//! and the states of a subscription around it.
//! <https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md#4-abuse-protection>
//! <https://learn.microsoft.com/azure/event-grid/webhook-event-delivery>

mod answer;
mod request;
mod states;

pub use answer::{AllowedRate, AllowedRateError, HandshakeResult, judge_failure, judge_response};
pub use request::{HandshakeContext, HandshakeRequest, handshake_request};
pub use states::{
    NewHandshake, SubscriptionAction, WrongState, called_back, status_after_action,
    status_after_handshake, status_after_write,
};
