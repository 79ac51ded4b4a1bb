//! Values that everything else is about: names, times, secrets, endpoints, topics, deliveries, and
//! the limits.

mod address;
mod carried;
mod causes;
mod content_coding;
pub mod delivery;
mod delivery_log;
mod endpoint;
pub mod hex;
mod hops;
mod identity;
pub mod idle;
mod json_object;
pub mod json_pointer;
mod limits;
mod made_key;
mod mapping;
mod matched;
pub mod metric;
mod name;
mod object_key;
pub mod origin;
mod ownership;
pub mod pasted;
mod path_steps;
mod payload;
mod publish_url;
mod recovery;
mod sas_token;
mod schema;
mod secret;
mod sender_headers;
pub mod size;
pub mod time;
pub mod topic;
pub mod url_text;
pub mod visible;
mod written_time;

pub use address::{AddressPolicy, AddressRefusal};
pub use carried::CarriedEvents;
pub use causes::with_causes;
pub use content_coding::content_coding;
pub use delivery::{
    DeadLetter, Delivery, DeliveryEntry, EventMarks, LastAttempt, LetterPlace, PublishSchedule,
    StorageTrouble, matched_names, message_group_id,
};
pub use delivery_log::DeliveryLogMode;
pub use endpoint::{EndpointUrl, EndpointUrlError, Link};
pub use hops::{HOPS_HEADER, Hops, HopsError, NEUTRAL_HOPS_HEADER};
pub use identity::{
    CREATION_ID_BYTES, CreationId, CreationRecord, Identity, SubscriptionCreation, TopicCreations,
};
pub use idle::SubscriptionLifetime;
pub use json_object::JsonObject;
pub use json_pointer::{JsonPointer, JsonPointerError};
pub use limits::*;
pub use made_key::{MADE_KEY_BYTES, made_key};
pub use mapping::{EVENT_TYPE_DEFAULT, InputMapping, MappedField, SourceField, SourceFieldError};
pub use matched::MatchCounts;
pub use name::{NameError, SubscriptionName, TopicName};
pub use object_key::{is_key_text, is_object_key};
pub use ownership::{LivingOwner, OwnershipClaim, StateOwner};
pub use path_steps::has_steps;
pub use payload::{EventPayload, PayloadDigest};
pub use publish_url::{API_EVENTS_PATH, EVENTS_PATH, PublishUrls};
pub use recovery::{EarlierLife, RecoveryPolicy};
pub use sas_token::SasToken;
pub use schema::{ContentMode, EventSchema};
pub use secret::{
    ADMIN_KEY_CHARS_MIN, KeyDigest, PUBLISH_KEY_CHARS_MAX, PUBLISH_KEY_CHARS_MIN, Secret,
};
pub use sender_headers::{PrefixError, SenderHeader, SenderHeaderNames, SenderHeaders};
pub use time::{TimeError, Timestamp};
pub use topic::{
    DeadLetterPolicy, KeepingMissed, Subscription, SubscriptionIntake, SubscriptionStatus, Topic,
    TopicKeys, WhileDisabled,
};
pub use written_time::{WrittenTime, WrittenTimeError};
