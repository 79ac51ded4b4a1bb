//! Notices: events that tell an operator the fate of an event or of a subscription, or the load of
//! the program. They go to the topic that a topic names as its `noticesTopic`; notices that are
//! about no topic go to one that the operator names. Their schema is that of the topic that gets
//! them. Other crates send them.

mod disabled;
mod envelope;
mod failed;
mod health;
mod later;
mod link;
mod pressure;
mod recovering;

use crate::events::{Event, EventError};
use crate::model::{EventSchema, Hops, Topic};
use crate::pressure::PressureChange;

pub use self::disabled::{DisabledNotice, SUBSCRIPTION_DISABLED};
pub use self::failed::{DELIVERY_FAILED, DeliveryFailedNotice};
pub use self::health::{
    DELIVERY_DELAYED, DelayNews, HealthNews, LINK_FAILING, LINK_RECOVERED, LinkNews, MissedNews,
    NAMED_SUBSCRIPTIONS_MAX, SUBSCRIPTION_FAILING, SUBSCRIPTION_RECOVERED, SUBSCRIPTION_SKIPPING,
    SubscriptionNews,
};
pub use self::later::{LetterFate, notice_retry_letter};
pub use self::link::{LINK_DOWN, LINK_UP, LinkNotice};
pub use self::pressure::PRESSURE_CHANGED;
pub use self::recovering::{RecoveryNotice, SUBSCRIPTION_RECOVERING};

/// The news that a notice tells.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// An event was dead-lettered or dropped.
    Failed(DeliveryFailedNotice<'a>),
    /// A subscription was disabled.
    Disabled(DisabledNotice<'a>),
    /// The pressure of a resource changed.
    Pressure(&'a PressureChange),
    /// A link, or a subscription on it, is down or up again.
    Link(LinkNotice<'a>),
    /// A subscription or a link is failing, or is healthy again, an event is late, or what a
    /// disabled subscription misses will soon be skipped.
    Health(HealthNews<'a>),
    /// Dead letters of an outage are sent again by themselves.
    Recovering(RecoveryNotice<'a>),
}

impl Notice<'_> {
    /// Whether the notice is about this creation of the topic: events that an earlier topic of this
    /// name accepted may belong to others.
    pub fn is_about(&self, topic: &Topic) -> bool {
        match self {
            Self::Failed(DeliveryFailedNotice { letter, .. }) => {
                topic.has_accepted(letter.delivery.identity, letter.delivery.published_at)
            }
            Self::Disabled(_)
            | Self::Pressure(_)
            | Self::Link(_)
            | Self::Health(_)
            | Self::Recovering(_) => true,
        }
    }

    /// The number of posthaste's deliveries that led to it: as many as its event came through, so
    /// that endpoints that publish their notices end their loop.
    pub fn hops(&self) -> Hops {
        match self {
            Self::Failed(failed) => failed.letter.delivery.hops,
            Self::Disabled(_)
            | Self::Pressure(_)
            | Self::Link(_)
            | Self::Health(_)
            | Self::Recovering(_) => Hops::default(),
        }
    }

    /// The notice as an event of this schema, at most
    /// [`NOTICE_BYTES_MAX`](crate::model::NOTICE_BYTES_MAX) long. The same news makes the same
    /// `id`, however often it is told. An error would be a defect of ours.
    pub fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        match self {
            Self::Failed(failed) => failed.render_event(schema),
            Self::Disabled(disabled) => disabled.render_event(schema),
            Self::Pressure(change) => change.render_event(schema),
            Self::Link(changed) => changed.render_event(schema),
            Self::Health(news) => news.render_event(schema),
            Self::Recovering(recovering) => recovering.render_event(schema),
        }
    }
}
