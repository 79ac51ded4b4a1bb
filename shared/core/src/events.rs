//! Events: requests become events in [`parse_request`], events become requests in [`output`], and
//! are converted from one schema into another on the way.

mod binary;
mod cloud_events;
mod convert;
mod custom;
mod date_time;
mod error;
mod event;
mod event_grid;
mod media_type;
mod members;
mod names;
pub mod output;
mod request;
mod set_aside;
mod splice;
mod syntax;
pub mod test_event;

pub use self::cloud_events::attribute_time;
pub(crate) use self::cloud_events::is_extension_name;
pub use self::convert::convert_event;
pub use self::custom::GeneratedValues;
pub use self::error::{EventError, EventExpectation, PublishInputError};
pub use self::event::Event;
pub use self::request::{PublishRequest, TopicInput, parse_request};
pub use self::set_aside::{SetAside, put_back, set_aside, value_behind};
pub use self::splice::{with_members, without_members};
