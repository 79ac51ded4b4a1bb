//! The detail in which metrics are told apart.

/// The owners that have series of their own. All others share those of [`OTHER`], so that sums stay
/// right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeriesBy {
    /// Every topic while there are few; some of them once there are more.
    #[default]
    FewTopics,
    /// None.
    Total,
    /// Every topic.
    Topic,
    /// Every subscription.
    Subscription,
}

/// The topic and subscription under which those are shown that have no series of their own. No name
/// begins with this character.
pub(super) const OTHER: &str = "_other";

impl SeriesBy {
    /// The value that a setting names.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "total" => Some(Self::Total),
            "topic" => Some(Self::Topic),
            "subscription" => Some(Self::Subscription),
            _ => None,
        }
    }

    /// Whether series have a label of this name.
    pub(super) fn keeps_label(self, label: &str) -> bool {
        match label {
            posthaste_core::model::metric::TOPIC => self != Self::Total,
            posthaste_core::model::metric::SUBSCRIPTION => self == Self::Subscription,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_is_one_of_three_words() {
        let named = ["total", "topic", "subscription"].map(SeriesBy::from_name);
        let expected = [SeriesBy::Total, SeriesBy::Topic, SeriesBy::Subscription];
        assert_eq!(named, expected.map(Some));
        for text in ["", "Total", "stack", "few-topics"] {
            assert_eq!(SeriesBy::from_name(text), None, "{text}");
        }
    }
}
