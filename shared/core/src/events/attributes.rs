//! The attributes of an event that the rules look at.

use crate::model::Timestamp;

/// What was read from the text, decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) id: Box<str>,
    pub(super) event_type: Box<str>,
    pub(super) source: Option<Box<str>>,
    pub(super) subject: Option<Box<str>>,
    pub(super) time: Option<Timestamp>,
    pub(super) expirytime: Option<Timestamp>,
    pub(super) traceparent: Option<Box<str>>,
}
