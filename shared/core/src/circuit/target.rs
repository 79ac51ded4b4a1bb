//! Targets, which fail as a whole: a link, or one subscription on it.

use std::fmt;

use crate::model::{EndpointUrl, Link, Subscription, SubscriptionName, TopicName};

/// A link, or a subscription on it. Its text is the link's, and the subscription's after a blank.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeliveryTarget {
    /// Every subscription on this host and port.
    Link(Link),
    /// One subscription on a link. If it moves to another link, it is another target.
    Subscription {
        /// The link of its endpoint.
        link: Link,
        /// The topic's name, folded.
        topic: TopicName,
        /// The subscription's name, folded.
        name: SubscriptionName,
    },
}

impl DeliveryTarget {
    /// A subscription where its endpoint is.
    pub fn for_subscription(subscription: &Subscription) -> Self {
        Self::on_link(subscription.endpoint.link(), subscription)
    }

    /// A subscription on a link: its endpoint's, or its fallback's.
    pub fn on_link(link: Link, subscription: &Subscription) -> Self {
        let topic = subscription.topic.clone();
        let name = subscription.name.clone();
        Self::Subscription { link, topic, name }
    }

    /// The link that it is, or is on.
    pub fn link(&self) -> &Link {
        match self {
            Self::Link(link) | Self::Subscription { link, .. } => link,
        }
    }

    /// The subscription's topic, if it is a subscription.
    pub fn topic(&self) -> Option<&TopicName> {
        match self {
            Self::Link(_) => None,
            Self::Subscription { topic, .. } => Some(topic),
        }
    }

    /// The subscription's name, if it is a subscription.
    pub fn subscription(&self) -> Option<&SubscriptionName> {
        match self {
            Self::Link(_) => None,
            Self::Subscription { name, .. } => Some(name),
        }
    }

    /// Reads a target's text; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let Some((url, subscription)) = text.split_once(' ') else {
            return parse_link(text).map(Self::Link);
        };
        let (topic, name) = subscription.split_once('.')?;
        Some(Self::Subscription {
            link: parse_link(url)?,
            topic: TopicName::parse(topic).ok()?,
            name: SubscriptionName::parse(name).ok()?,
        })
    }
}

fn parse_link(url: &str) -> Option<Link> {
    Some(EndpointUrl::parse(url).ok()?.link())
}

impl fmt::Display for DeliveryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(link) => write!(f, "{link}"),
            Self::Subscription { link, topic, name } => {
                write!(f, "{link} {}.{}", topic.folded(), name.folded())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_from_its_own_text() {
        let check = |text: &str| assert_eq!(DeliveryTarget::parse(text).unwrap().to_string(), text);
        check("https://a.example:443");
        check("http://[2001:db8::1]:8080");
        check("https://a.example:443 orders.billing");
    }

    #[test]
    fn only_a_subscription_has_its_names() {
        let names = |text: &str| {
            let target = DeliveryTarget::parse(text).unwrap();
            (
                target.topic().map(ToString::to_string),
                target.subscription().map(ToString::to_string),
            )
        };
        assert_eq!(names("https://a.example:443"), (None, None));
        let subscription = names("https://a.example:443 orders.billing");
        assert_eq!(
            subscription,
            (Some("orders".to_owned()), Some("billing".to_owned()))
        );
    }

    #[test]
    fn invalid_targets_are_refused() {
        for bad in [
            "",
            "a.example",
            "https://a.example:443 orders",
            "https://a.example:443 or ders.billing",
        ] {
            assert_eq!(DeliveryTarget::parse(bad), None, "{bad}");
        }
    }
}
