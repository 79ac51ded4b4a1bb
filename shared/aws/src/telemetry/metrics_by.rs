//! Labels that become dimensions of CloudWatch metrics.

use std::str::FromStr;

/// The labels of `topic` and `subscription` that become CloudWatch dimensions. Each distinct value of a
/// dimension is a metric of its own, and billed as one; another label stays in the log line, where it can be
/// searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricsBy {
    /// Neither: one metric per name for the whole stack.
    #[default]
    Stack,
    /// `topic` alone.
    Topic,
    /// Both.
    Subscription,
}

/// Why a text is not a [`MetricsBy`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected stack, topic or subscription")]
pub struct MetricsByError;

impl FromStr for MetricsBy {
    type Err = MetricsByError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "stack" => Ok(Self::Stack),
            "topic" => Ok(Self::Topic),
            "subscription" => Ok(Self::Subscription),
            _ => Err(MetricsByError),
        }
    }
}

impl MetricsBy {
    /// True if a label of this name becomes a dimension. Labels other than the two do, such as `reason`:
    /// their values are few.
    pub(crate) fn keeps(self, label: &str) -> bool {
        match label {
            "topic" => self != Self::Stack,
            "subscription" => self == Self::Subscription,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_cost_a_metric_each_are_dimensions_only_on_demand() {
        let kept = |by: MetricsBy| ["topic", "subscription", "reason"].map(|label| by.keeps(label));
        assert_eq!(kept(MetricsBy::Stack), [false, false, true]);
        assert_eq!(kept(MetricsBy::Topic), [true, false, true]);
        assert_eq!(kept(MetricsBy::Subscription), [true, true, true]);
    }

    #[test]
    fn a_setting_is_one_of_three_words() {
        assert_eq!("stack".parse(), Ok(MetricsBy::Stack));
        assert_eq!("topic".parse(), Ok(MetricsBy::Topic));
        assert_eq!("subscription".parse(), Ok(MetricsBy::Subscription));
        for text in ["", "Topic", "all"] {
            assert_eq!(text.parse::<MetricsBy>(), Err(MetricsByError), "{text}");
        }
    }
}
