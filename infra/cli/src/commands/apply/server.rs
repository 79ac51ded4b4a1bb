//! Topics on the server: read with their version, and put in the place of that version.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::api::{TopicPage, TopicSettings, TopicSummary};
use posthaste_core::model::TopicName;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::header::ETAG;
use ureq::http::{HeaderMap, Method};

use crate::client::{ApiCall, ClientError};
use crate::commands::session::AdminSession;
use crate::commands::whole_topics::PAGE_TOPICS;
use crate::terminal::tell_user;

/// A topic as the server shows it, with the version of that.
pub(super) struct VersionedTopic {
    pub(super) topic: Value,
    /// The version: the text of `ETag`. None if a proxy took that away.
    pub(super) version: Option<String>,
}

impl VersionedTopic {
    /// The topic's settings as they are shown.
    pub(super) fn shown_settings(
        &self,
        session: &AdminSession,
    ) -> Result<TopicSettings, ClientError> {
        TopicSettings::deserialize(&self.topic).map_err(|source| ClientError::Answer {
            url: session.client.base_url().clone(),
            source,
        })
    }

    /// Whether both are of one version, if that of both is known.
    pub(super) fn is_same_version(&self, other: &Self) -> Option<bool> {
        Some(self.version.as_ref()? == other.version.as_ref()?)
    }
}

/// Topics of the files from which on all of the server's are read as a list, and not one by one.
const LISTED_FROM: usize = 20;

/// The topics on the server, as far as they were read before anything is done.
pub(super) struct ServerTopics {
    /// By their names in lower case. None where the files declare few.
    listed: Option<BTreeMap<String, TopicSummary>>,
    /// The names, in lower case, of those whose records cannot be read.
    unreadable: BTreeSet<String>,
}

impl ServerTopics {
    /// Reads all topics if so many are declared, or `all` are wanted.
    pub(super) fn read(
        session: &AdminSession,
        declared: usize,
        all: bool,
    ) -> Result<Self, ClientError> {
        if declared < LISTED_FROM && !all {
            return Ok(Self {
                listed: None,
                unreadable: BTreeSet::new(),
            });
        }
        let mut unreadable = BTreeSet::new();
        let whole = [("settings", "true"), ("limit", PAGE_TOPICS)];
        let topics = match read_topics(session, &whole, &mut unreadable) {
            // A server of 0.1 lists names alone.
            Err(ClientError::Refused(refusal)) if refusal.status == 400 => {
                read_topics(session, &[], &mut unreadable)?
            }
            listed => listed?,
        };
        let by_name = topics.into_iter().map(|it| (it.name.folded(), it));
        Ok(Self {
            listed: Some(by_name.collect()),
            unreadable,
        })
    }

    /// The names of all topics, where they were wanted.
    pub(super) fn names(&self) -> impl Iterator<Item = &TopicName> {
        self.listed.iter().flatten().map(|(_, topic)| &topic.name)
    }

    /// The version of a listed topic.
    pub(super) fn listed_version(&self, name: &TopicName) -> Option<&str> {
        let topic = self.listed.as_ref()?.get(&name.folded())?;
        topic.etag.as_deref()
    }

    /// The name of a topic whose record cannot be read.
    pub(super) fn first_unreadable(&self) -> Option<&str> {
        self.unreadable.first().map(String::as_str)
    }

    /// A topic as it was when all were read, or is now if they were not. `None` if it does not
    /// exist.
    pub(super) fn read_topic(
        &self,
        session: &AdminSession,
        name: &TopicName,
    ) -> Result<Option<VersionedTopic>, ClientError> {
        let Some(listed) = &self.listed else {
            return read_current_topic(session, name);
        };
        match listed.get(&name.folded()) {
            // The server says what is wrong with it.
            None if self.unreadable.contains(&name.folded()) => read_current_topic(session, name),
            None => Ok(None),
            Some(TopicSummary {
                settings: Some(settings),
                etag: Some(etag),
                ..
            }) => Ok(Some(VersionedTopic {
                topic: json!(settings),
                version: Some(etag.clone()),
            })),
            Some(_) => read_current_topic(session, name),
        }
    }
}

/// Reads the list of topics with these parameters, and notes the names of those whose records
/// cannot be read.
fn read_topics(
    session: &AdminSession,
    parameters: &[(&str, &str)],
    unreadable: &mut BTreeSet<String>,
) -> Result<Vec<TopicSummary>, ClientError> {
    session.read_list_with(&["topics"], parameters, |page: TopicPage| {
        unreadable.extend(page.unreadable.into_iter().map(|it| it.name));
        (page.topics, page.cursor)
    })
}

/// The topic as it is now; `None` if it does not exist.
pub(super) fn read_current_topic(
    session: &AdminSession,
    name: &TopicName,
) -> Result<Option<VersionedTopic>, ClientError> {
    match send_for_topic(
        session,
        session.call(Method::GET, &["topics", name.as_str()]),
    ) {
        Ok(topic) => Ok(Some(topic)),
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Shows the signing secrets of those subscriptions that were not there `before`. The answer to the
/// write that made them was lost, and later ones mask them.
pub(super) fn show_made_secrets(
    session: &AdminSession,
    name: &TopicName,
    before: Option<&VersionedTopic>,
    after: &mut VersionedTopic,
) {
    let subscriptions = after.topic.get_mut("subscriptions");
    let Some(subscriptions) = subscriptions.and_then(Value::as_object_mut) else {
        return;
    };
    let old = before.and_then(|before| before.topic.get("subscriptions"));
    let made = subscriptions
        .iter_mut()
        .filter(|(name, _)| old.and_then(|old| old.get(name.as_str())).is_none());
    let mut made = made.peekable();
    if made.peek().is_none() {
        return;
    }
    let call = session.call(Method::GET, &["topics", name.as_str()]);
    let Ok(revealed) = send_for_topic(session, call.query("secrets", Some(true))) else {
        tell_user(&format!(
            "warning: the signing secrets that were made for {name} could not be read; \
             `posthaste topics export --secrets` shows them"
        ));
        return;
    };
    for (name, subscription) in made {
        let signing = revealed.topic["subscriptions"][name].get("signing");
        if let (Some(subscription), Some(signing)) = (subscription.as_object_mut(), signing) {
            subscription.insert("signing".to_owned(), signing.clone());
        }
    }
}

/// Puts a topic if `before` is still what is there.
pub(super) fn replace_topic(
    session: &AdminSession,
    name: &TopicName,
    settings: &TopicSettings,
    before: Option<&VersionedTopic>,
) -> Result<VersionedTopic, ClientError> {
    let body = serde_json::to_vec(settings).map_err(|source| ClientError::Answer {
        url: session.client.base_url().clone(),
        source,
    })?;
    let path = ["topics", name.as_str()];
    let call = session
        .call(Method::PUT, &path)
        .body("application/json", body);
    send_for_topic(
        session,
        match before {
            Some(before) => call.header("if-match", before.version.as_ref()),
            None => call.header("if-none-match", Some("*")),
        },
    )
}

fn send_for_topic(
    session: &AdminSession,
    call: ApiCall<'_>,
) -> Result<VersionedTopic, ClientError> {
    let answer = session.client.send(call)?;
    Ok(VersionedTopic {
        topic: session.client.parse_body(&answer.body)?,
        version: etag_version(&answer.headers),
    })
}

/// The text of `ETag`, as the server wrote it: a proxy that compresses makes it a weak one, and
/// `If-Match` never holds for those.
fn etag_version(headers: &HeaderMap) -> Option<String> {
    let etag = headers.get(ETAG)?.to_str().ok()?;
    Some(etag.strip_prefix("W/").unwrap_or(etag).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::HeaderValue;

    fn topic_with_etag(etag: Option<&'static str>) -> VersionedTopic {
        let headers = etag.map(|etag| (ETAG, HeaderValue::from_static(etag)));
        VersionedTopic {
            topic: Value::Null,
            version: etag_version(&headers.into_iter().collect()),
        }
    }

    #[test]
    fn a_tag_that_a_proxy_weakened_is_that_of_the_server() {
        assert_eq!(
            topic_with_etag(Some("W/\"1-a\"")).version.as_deref(),
            Some("\"1-a\"")
        );
        assert_eq!(
            topic_with_etag(Some("\"W/\"")).version.as_deref(),
            Some("\"W/\"")
        );
    }

    #[test]
    fn versions_are_compared_only_where_both_are_known() {
        let check = |one, other, expected| {
            assert_eq!(
                topic_with_etag(one).is_same_version(&topic_with_etag(other)),
                expected
            );
        };
        check(Some("\"1\""), Some("W/\"1\""), Some(true));
        check(Some("\"1\""), Some("\"2\""), Some(false));
        check(None, None, None);
        check(Some("\"1\""), None, None);
        check(None, Some("\"1\""), None);
    }
}
