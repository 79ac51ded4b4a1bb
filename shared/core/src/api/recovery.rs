//! A recovery by itself as users see it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::IsoTimestamp;
use crate::model::{SubscriptionName, TopicName};

/// Dead letters of an outage that are sent again by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryView {
    /// The topic.
    #[schema(value_type = String)]
    pub topic: TopicName,
    /// The subscription.
    #[schema(value_type = String)]
    pub subscription: SubscriptionName,
    /// The time since which the endpoint was not well.
    pub outage_since: IsoTimestamp,
    /// The number of dead letters of the outage.
    pub letters: u64,
    /// The number of those that are queued to be delivered again.
    pub queued: u64,
    /// The replay that sends them: `GET /replays/{id}` shows it, `DELETE` cancels the recovery of
    /// this outage. Left out until it begins, once the endpoint has been well for some minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "20261121T101500Z-0b8b9c5e")]
    pub replay: Option<String>,
    /// The time since which they are sent. Left out until that begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<IsoTimestamp>,
    /// Whether they wait until the endpoint is well, and has been for some minutes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

impl RecoveryView {
    /// The recovery in a line, with its subscription.
    pub fn summary_line(&self) -> String {
        format!("{}/{} {}", self.topic, self.subscription, self.in_words())
    }

    /// The recovery in a line, without its subscription.
    pub fn in_words(&self) -> String {
        let letters = group_digits(self.letters);
        let Some(since) = self.since else {
            return format!(
                "recovers by itself once the endpoint is well: {letters} dead letters of the outage since {}",
                self.outage_since.0
            );
        };
        let rests = if self.waits {
            ", rests until the endpoint is well"
        } else {
            ""
        };
        let queued = group_digits(self.queued);
        format!(
            "recovers by itself since {}, {queued} of {letters}{rests}",
            since.0
        )
    }
}

/// A number with a comma before each group of three digits.
fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        let numbers = [0, 999, 1_000, 12_345, 1_234_567];
        let texts = numbers.map(group_digits);
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
