//! Values that everything else is about: names, times, secrets, endpoints, topics, deliveries, and
//! the limits.

mod address;
mod arrival_settings;
mod attribute_name;
mod batch_policy;
mod carried;
mod causes;
mod content_coding;
mod dead_letter_reason;
pub mod delivery;
pub(crate) mod delivery_header;
mod delivery_log;
mod endpoint;
mod event_envelope;
mod event_names;
pub mod filter;
pub mod hex;
mod hops;
mod identity;
pub mod idle;
mod json_object;
pub mod json_pointer;
mod json_text;
mod limits;
mod made_key;
mod mapping;
mod matched;
pub mod metric;
mod name;
mod object_key;
mod object_writer;
pub mod origin;
mod outcome;
mod ownership;
pub mod pasted;
mod path_steps;
mod payload;
mod producer_tier;
mod publish_url;
mod recovery;
mod request_rate;
mod retry_policy;
mod sas_token;
mod schema;
mod secret;
mod sender_headers;
pub mod signature;
pub mod size;
mod slot_limit;
mod stored_format;
pub mod time;
pub mod topic;
pub mod url_text;
pub mod visible;
mod webhook_id;
pub(crate) mod word;
mod written_time;
pub(crate) mod zero;

pub use address::{AddressPolicy, AddressRefusal};
pub use arrival_settings::ArrivalSettings;
pub(crate) use attribute_name::is_attribute_name;
pub use batch_policy::BatchPolicy;
pub use carried::CarriedEvents;
pub use causes::with_causes;
pub use content_coding::content_coding;
pub use dead_letter_reason::DeadLetterReason;
pub use delivery::{
    DeadLetter, Delivery, DeliveryEntry, EventMarks, LastAttempt, LetterPlace, PublishSchedule,
    StorageTrouble, is_expired, matched_names, message_group_id,
};
pub use delivery_header::{DeliveryHeader, DeliveryHeaderError};
pub use delivery_log::DeliveryLogMode;
pub use endpoint::{EndpointUrl, EndpointUrlError, Link};
pub use event_envelope::EventEnvelope;
pub use event_names::EventNames;
pub use hops::{HOPS_HEADER, Hops, HopsError, NEUTRAL_HOPS_HEADER};
pub use identity::{
    CREATION_ID_BYTES, CreationId, CreationRecord, Identity, SubscriptionCreation, TopicCreations,
};
pub use idle::SubscriptionLifetime;
pub use json_object::JsonObject;
pub use json_pointer::{JsonPointer, JsonPointerError};
pub use json_text::fits_into_a_message;
pub(crate) use json_text::{escape_refused, is_shallow, lossy_text};
pub use limits::*;
pub use made_key::{MADE_KEY_BYTES, made_key};
pub use mapping::{EVENT_TYPE_DEFAULT, InputMapping, MappedField, SourceField, SourceFieldError};
pub use matched::MatchCounts;
pub use name::{NameError, SubscriptionName, TopicName};
pub use object_key::{is_key_text, is_object_key};
pub(crate) use object_writer::{ObjectWriter, quote_json_text};
pub use outcome::{AttemptOutcome, CertificateFault, OutcomeName, SendFailure, refuses_content};
pub use ownership::{LivingOwner, OwnershipClaim, StateOwner};
pub use path_steps::has_steps;
pub use payload::{EventPayload, PayloadDigest};
pub use producer_tier::ProducerTier;
pub use publish_url::{API_EVENTS_PATH, EVENTS_PATH, PublishUrls};
pub use recovery::{EarlierLife, RecoveryPolicy};
pub use request_rate::RequestRate;
pub use retry_policy::{
    PERMANENT_STATUSES_DEFAULT, RetryPolicy, SCHEDULE_DEFAULT, WAIT_FLOOR_BUSY, WAIT_FLOOR_DEFAULT,
    WAIT_FLOOR_REQUEST_TIMEOUT, WaitFloors,
};
pub use sas_token::SasToken;
pub use schema::{ContentMode, EventSchema};
pub use secret::{
    ADMIN_KEY_CHARS_MIN, KeyDigest, PUBLISH_KEY_CHARS_MAX, PUBLISH_KEY_CHARS_MIN, Secret,
};
pub use sender_headers::{PrefixError, SenderHeader, SenderHeaderNames, SenderHeaders};
pub use signature::{
    MADE_SECRET_BYTES, PublicKey, SignatureKind, SigningSecret, SigningSecretError,
};
pub use slot_limit::SlotLimit;
pub use stored_format::FormatError;
pub(crate) use stored_format::{StoredFormat, render_json};
pub use time::{TimeError, Timestamp};
pub use topic::{
    DeadLetterPolicy, KeepingMissed, Subscription, SubscriptionIntake, SubscriptionStatus, Topic,
    TopicKeys, WhileDisabled,
};
pub(crate) use webhook_id::WEBHOOK_ID_PREFIX;
pub use webhook_id::webhook_id_of;
pub use written_time::{WrittenTime, WrittenTimeError};
