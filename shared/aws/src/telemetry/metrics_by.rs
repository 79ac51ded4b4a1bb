//! Labels that become dimensions of CloudWatch metrics.

/// The labels of `topic` and `subscription` that become CloudWatch dimensions. Each distinct value
/// of a dimension is a metric of its own, and billed as one; another label stays in the log line,
/// where it can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum MetricsBy {
    /// Neither: one metric per name for the whole stack.
    #[default]
    Stack,
    /// Only `topic`.
    Topic,
    /// Both.
    Subscription,
}

/// Counters that an alarm watches. An alarm names the dimensions of its metric and knows no topics,
/// so that these metrics are of the stack in any case. `tests/aws/template` holds the list against
/// the alarms.
const WATCHED: [&str; 1] = ["LogRecordsLostCount"];

/// Whether an alarm watches this counter.
pub(crate) fn is_watched(metric: &str) -> bool {
    WATCHED.contains(&metric)
}

impl MetricsBy {
    /// The labels that become dimensions of this metric.
    pub(crate) fn for_metric(self, metric: &str) -> Self {
        if is_watched(metric) {
            Self::Stack
        } else {
            self
        }
    }

    /// The value that a setting names.
    pub fn from_setting(name: &str) -> Option<Self> {
        match name {
            "stack" => Some(Self::Stack),
            "topic" => Some(Self::Topic),
            "subscription" => Some(Self::Subscription),
            _ => None,
        }
    }

    /// True if a label of this name becomes a dimension. Labels other than the two do, such as
    /// `reason`: their values are few.
    pub(crate) fn is_dimension(self, label: &str) -> bool {
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
        let kept =
            |by: MetricsBy| ["topic", "subscription", "reason"].map(|label| by.is_dimension(label));
        assert_eq!(kept(MetricsBy::Stack), [false, false, true]);
        assert_eq!(kept(MetricsBy::Topic), [true, false, true]);
        assert_eq!(kept(MetricsBy::Subscription), [true, true, true]);
    }

    #[test]
    fn a_metric_that_an_alarm_watches_is_of_the_stack() {
        assert_eq!(
            MetricsBy::Subscription.for_metric("LogRecordsLostCount"),
            MetricsBy::Stack
        );
        assert_eq!(
            MetricsBy::Subscription.for_metric("DeliverySuccessCount"),
            MetricsBy::Subscription
        );
    }

    #[test]
    fn a_setting_is_one_of_three_words() {
        assert_eq!(MetricsBy::from_setting("stack"), Some(MetricsBy::Stack));
        assert_eq!(MetricsBy::from_setting("topic"), Some(MetricsBy::Topic));
        assert_eq!(
            MetricsBy::from_setting("subscription"),
            Some(MetricsBy::Subscription)
        );
        for text in ["", "Topic", "all"] {
            assert_eq!(MetricsBy::from_setting(text), None, "{text}");
        }
    }
}
