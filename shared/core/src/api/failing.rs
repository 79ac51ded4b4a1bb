//! Views of what fails now: one row for each subscription whose events do not arrive.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoTimestamp, LinkScope, WaitingView};
use crate::health::ArrivalShare;
use crate::model::word::display_the_word;
use crate::model::zero::is_zero;
use crate::model::{OutcomeName, SubscriptionName, TopicName};

/// What fails now. Subscriptions whose events arrive are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingView {
    /// The subscriptions, those that have failed the longest first, then those that are stopped. A
    /// whole link of which no subscription is known to fail has a row as well. The order depends on
    /// times and names alone, so that a row keeps its place as long as it is there.
    pub failing: Vec<FailingTarget>,
    /// The number of rows on all pages, with those that a row of `others` stands for.
    #[schema(example = 12)]
    pub total: u64,
    /// The number of these that recover.
    #[schema(example = 1)]
    pub recovering: u64,
    /// The number of these that are stopped: paused, disabled, or without the consent of their
    /// endpoint, and events wait for them or are missed.
    #[schema(example = 2)]
    pub stopped: u64,
    /// The number of these of which it is not known whether they fail.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(example = 0)]
    pub unknown: u64,
    /// The number of events that wait, for all subscriptions, the healthy ones too. Left out where
    /// it could not be counted in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Box<WaitingView>>,
    /// The time at which all this was counted.
    pub counted_at: IsoTimestamp,
    /// The parts that could not be read in time. Rows may lack what these would say, and there may
    /// be more rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<FailingPart>,
    /// Whether there may be more: 1,000 subscriptions were looked at, or more events wait than there
    /// was time to count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Where the next page begins. Left out on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A part of what is known about failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum FailingPart {
    /// The endpoints to which requests pause.
    Circuit,
    /// The tries of the last hour.
    Health,
    /// The events that wait.
    Waiting,
    /// The records of topics.
    Topics,
    /// A word of another program.
    #[serde(other)]
    Unknown,
}

display_the_word!(FailingPart);

/// A subscription whose events do not arrive, or a whole link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingTarget {
    /// The part that fails: everything on the link, or one subscription.
    pub scope: LinkScope,
    /// Scheme, host and port. Left out where the topic cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://billing.example.com:443")]
    pub link: Option<String>,
    /// The topic. Left out of a link without a subscription that is known to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "orders")]
    pub topic: Option<TopicName>,
    /// The subscription. Left out together with the topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "billing")]
    pub subscription: Option<SubscriptionName>,
    /// The state in a word.
    pub state: FailingState,
    /// The reason for which it is stopped, as its status says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "the endpoint answered 410 Gone")]
    pub reason: Option<String>,
    /// The time since which events do not arrive, or since which the subscription is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<IsoTimestamp>,
    /// The time of the last try that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure_at: Option<IsoTimestamp>,
    /// Its outcome, as dead letters name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "Busy")]
    pub last_outcome: Option<OutcomeName>,
    /// The status of its answer, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 503)]
    pub last_http_status_code: Option<u16>,
    /// The tries of the last hour, from the first one that failed on. Left out where none are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hour: Option<ArrivalView>,
    /// The events that wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Box<WaitingView>>,
    /// The number of events that came while it was disabled and were kept as dead letters.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(example = 400)]
    pub missed: u64,
    /// The time of the next request. Left out while it recovers, is stopped, or has nothing to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<IsoTimestamp>,
    /// The topics that get its notices: that of its topic, and the installation's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, example = json!(["ops"]))]
    pub notices_topics: Vec<TopicName>,
    /// Whether the notice was sent there that it fails. Left out where it is not known to be failing
    /// for long enough, and where no topic gets notices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<bool>,
    /// The number of further rows on the same link that this row stands for: at most five of a link
    /// are shown, unless `name` asks for some.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(example = 495)]
    pub others: u64,
}

/// The tries of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArrivalView {
    /// The number of tries that arrived.
    #[schema(example = 31)]
    pub arrived: u32,
    /// The number of tries. They are counted from the first one that failed.
    #[schema(example = 240)]
    pub tried: u32,
    /// The beginning of the minute of the first of them.
    pub from: IsoTimestamp,
}

impl ArrivalView {
    /// The view of a share; `None` of no tries.
    pub fn from_share(share: ArrivalShare) -> Option<Self> {
        Some(Self {
            arrived: share.arrived,
            tried: share.tries(),
            from: IsoTimestamp(share.from?),
        })
    }

    /// The share that arrived, in whole percent, rounded down.
    pub fn arrived_percent(self) -> u64 {
        let arrived = u64::from(self.arrived) * 100;
        arrived.checked_div(self.tried.into()).unwrap_or_default()
    }
}

/// The state of a row.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum FailingState {
    /// Too few events arrive.
    Failing,
    /// No event arrives.
    Down,
    /// The endpoint asked for a pause, by `Retry-After`.
    AskedToWait,
    /// Requests go out again, little by little.
    Recovering,
    /// An operator paused it, and events wait.
    Paused,
    /// Its endpoint has not consented yet, and events wait.
    Pending,
    /// Its endpoint did not consent, and events wait.
    Refused,
    /// An operator disabled it, or its endpoint is gone, and events wait or were missed.
    Disabled,
    /// Whether it fails is not known: the record of its topic, or the state of its
    /// endpoint, cannot be read.
    Unknown,
}

display_the_word!(FailingState);

impl FailingState {
    /// Whether an operator or an endpoint stopped the subscription, so that nothing is tried.
    pub fn is_stopped(self) -> bool {
        matches!(
            self,
            Self::Paused | Self::Pending | Self::Refused | Self::Disabled
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn share_of_no_tries_has_no_view() {
        assert_eq!(ArrivalView::from_share(ArrivalShare::default()), None);
        let share = ArrivalShare {
            arrived: 1,
            failed: 2,
            from: Some(Timestamp::EPOCH),
        };
        let view = ArrivalView::from_share(share).unwrap();
        assert_eq!((view.tried, view.arrived_percent()), (3, 33));
    }

    #[test]
    fn part_that_a_later_program_names_is_unknown() {
        let part: FailingPart = serde_json::from_str("\"weather\"").unwrap();
        assert_eq!(part, FailingPart::Unknown);
        assert_eq!(FailingState::AskedToWait.to_string(), "askedToWait");
    }
}
