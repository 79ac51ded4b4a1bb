#![doc = include_str!("../README.md")]

mod admission;
mod authorize;
mod body;
mod error;
mod headers;
mod idempotency;
mod meter;
mod not_before;
mod publish;
mod router;
mod settings;
mod spans;
mod time_to_live;

pub use crate::admission::TarpitTurns;
pub use crate::body::{BodyBudget, BodyError};
pub use crate::error::{BackPressureResponse, PublishError, RETRY_AFTER_DEFAULT};
pub use crate::headers::{
    IDEMPOTENCY_KEY_HEADER, NOT_BEFORE_HEADER, PRESSURE_HEADER, TIER_HEADER, TIME_TO_LIVE_HEADER,
};
pub use crate::not_before::NotBeforeError;
pub use crate::publish::{Publish, PublishedRequest};
pub use crate::router::{router, routes};
pub use crate::settings::{PublishSettings, TarpitMode};
pub use crate::time_to_live::TimeToLiveError;
