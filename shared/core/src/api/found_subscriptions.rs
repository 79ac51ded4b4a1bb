//! The subscriptions that were found by their names or the URLs of their endpoints.

mod url_search;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::url_search::UrlSearch;
use super::UnreadableTopic;
use crate::model::{SubscriptionName, TopicName};

/// One page of the subscriptions of all topics, in the order of their topics' names and of their
/// own, without regard to case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundSubscriptions {
    /// The subscriptions.
    pub subscriptions: Vec<FoundSubscription>,
    /// The number of topics that were searched for this page.
    #[schema(example = 12)]
    pub topics_searched: usize,
    /// The first hundred topics whose records cannot be read, and so were not searched. Left out
    /// where all can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableTopic>,
    /// The place at which the search goes on: send it as `cursor`. Left out once every topic was
    /// searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// What this answer lacks, and why. Left out where there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A subscription that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundSubscription {
    /// The topic, as it was created.
    #[schema(value_type = String, example = "orders")]
    pub topic: TopicName,
    /// The subscription's name.
    #[schema(value_type = String, example = "billing")]
    pub name: SubscriptionName,
    /// The URL of its endpoint, without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://billing.example.com/hooks")]
    pub url: Option<String>,
    /// The URL of its fallback, without the query. Left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://standby.example.com/hooks")]
    pub fallback_url: Option<String>,
}
