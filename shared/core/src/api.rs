//! The objects that users write and read: topics and subscriptions as JSON and YAML, with Event
//! Grid's names where it has one.
//!
//! The API and `apply -f` accept the same object, and show it back with its secrets masked.
//! [`compile`] turns it once into the domain's [`crate::model::Topic`]; nothing else looks at it.

mod audit;
mod compile;
mod dead_letters;
mod delivery_headers;
mod difference;
pub mod doctor;
pub mod edit;
mod event_request;
pub mod events;
mod failing;
mod found;
mod found_subscriptions;
pub mod handshake;
mod health;
mod iso;
mod json_document;
mod json_schema;
mod left_out;
mod letter_groups;
mod letter_work;
mod link_settings;
mod links;
mod mapping;
mod mistakes;
mod naming;
mod next_attempt;
pub mod notice;
mod pressure;
pub mod problem;
mod publish_answer;
mod recovery;
mod replay;
mod resend;
mod secret_text;
mod sender_headers;
mod settings;
mod signing;
mod test_event;
mod topic_keys;
mod view;
mod waiting;
mod webhook_keys;

pub use audit::{
    AuditAction, AuditActor, AuditCaller, AuditDoor, AuditEntry, AuditOutcome, AuditPage,
    PeerAddress,
};
#[cfg(test)]
pub(crate) use compile::compile_filter;
pub use compile::{
    FilterProblem, SettingsError, SettingsProblem, check_topic_keys, compile_sender_headers,
    compile_subscription, compile_topic,
};
pub use dead_letters::{
    DeadLetterPage, DeadLetterView, ImportRequestView, ImportResponse, ImportedObjectView,
    ResolveRequest, ResolveResponse,
};
pub use delivery_headers::DeliveryHeaderSettings;
pub use difference::{MemberChange, subscription_differences, topic_differences};
pub use event_request::EventRequestView;
pub use failing::{ArrivalView, FailingPart, FailingState, FailingTarget, FailingView};
pub use found::{FoundEvent, FoundEvents};
pub use found_subscriptions::{FoundSubscription, FoundSubscriptions, UrlSearch};
pub use handshake::{
    AllowedRate, AllowedRateError, HandshakeContext, HandshakeRequest, HandshakeResult,
    NewHandshake, SubscriptionAction,
};
pub use health::{KnownHealth, SubscriptionHealthView};
pub use iso::{IsoDuration, IsoTimestamp};
pub use json_document::{JsonFault, read_json};
pub use json_schema::apply_file_schema;
pub use left_out::{LeftOutCounts, LeftOutReason};
pub use letter_groups::{LetterGroupPage, LetterGroupView, LetterStatusCount};
pub use letter_work::{LetterWorkAction, LetterWorkPage, LetterWorkState, LetterWorkView};
pub use link_settings::LinkSettings;
pub use links::{
    ForcedView, HELD_OBJECTS_SHOWN_MAX, LinkScope, LinkState, LinkView, LinksView, SlowTargetView,
};
pub use mapping::{InputMappingSettings, JsonFieldSettings, JsonFieldWithDefaultSettings};
pub use mistakes::{InputMistake, InputNotation, WrittenValue, read_answer, read_written};
pub use next_attempt::NextAttempt;
pub use pressure::{PressureFreshness, PressureResource, PressureTopic, PressureView};
pub use publish_answer::PublishResponse;
pub use recovery::RecoveryView;
pub use replay::{
    RecoveredOutage, ReplayFailure, ReplayOutcomes, ReplayPage, ReplayPreview, ReplayReason,
    ReplayRequest, ReplayResult, ReplaySource, ReplayState, ReplayView,
};
pub use resend::{CancelledEventView, DeadLetterPlace, ResendRequest, ResendView};
pub use secret_text::{MASKED, SecretText};
pub use sender_headers::SenderHeaderSettings;
pub(crate) use settings::GONE_REASON;
pub use settings::{
    AdvancedFilterSettings, ApplyFile, BatchingSettings, ConsentView, DeadLetterSettings,
    EndpointSettings, EndpointValidation, FilterSettings, HandshakeView, RecoverySettings,
    RetryPolicySettings, StatusView, SubscriptionSettings, TopicSettings,
};
pub use signing::{
    MaskError, RoomRemedy, RotateSecret, RotatedSecret, RotationError, SigningSettings,
    resolve_masks,
};
pub use test_event::{TestAttempt, TestRequest, TestResponse};
pub use topic_keys::{KeyName, TierKeys, TopicKeySettings, TopicKeysView};
pub use view::{HealthView, SubscriptionPage, TopicPage, TopicSummary, UnreadableTopic};
pub use waiting::{LastOutcomeView, WaitingCount, WaitingView};
pub use webhook_keys::{WebhookKey, WebhookKeys};

pub use crate::model::SubscriptionStatus as StatusState;
