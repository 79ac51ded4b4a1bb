//! Sends notices: to the topic that a topic names for them, or, if they are about no topic, to the
//! one that the operator named. They take the same fan-out as every event.
//!
//! A notice is sent at least once. If that is impossible, because its topic does not exist, cannot
//! be read or refuses it, the notice is counted and logged, and the sender continues.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::sync::Arc;

use metrics::Label;
use posthaste_core::api::notice::Notice;
use posthaste_core::events::Event;
use posthaste_core::model::{EventMarks, Hops, Topic, TopicName};

use crate::{EventOrigin, FanOut, FanOutError, InlineEvents, RegistryError, TopicRegistry};
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectStore, QueueSender};

/// Bytes of rendered notices that are gathered before they are sent. A list of notices may be many
/// times that.
const NOTICES_BYTES_PREFERRED: usize = 1024 * 1024;

/// The marks of every notice, so that there is no notice about a notice.
const MARKS: EventMarks = EventMarks {
    notice: true,
    replayed: false,
    resent: false,
    run: None,
    webhook_id: None,
    letter: None,
    earlier: None,
    outage_since: None,
    redirect: None,
    matched: None,
    counted: None,
    scheduled: None,
};

/// The ports that sending notices needs.
#[derive(Debug)]
pub struct Notifier<'a, Q, S, C, E> {
    /// Topics: the one that notices are about and the one that gets them.
    pub registry: &'a TopicRegistry<S, C>,
    /// The way into the delivery queue.
    pub fan_out: FanOut<'a, Q, S, C, E>,
}

/// The addressee of notices.
#[derive(Debug, Clone)]
pub enum NoticeAddressee {
    /// None: the topic names no addressee, or does not exist any more.
    Nobody,
    /// A topic that was named, but does not exist or cannot be read.
    Missing(TopicName),
    /// A topic.
    Topic(Arc<Topic>),
}

/// Reasons for which notices were not sent this time. Those that were written are delivered;
/// sending them again may duplicate that.
#[derive(Debug, thiserror::Error)]
pub enum NoticeError {
    /// The addressee could not be looked up.
    #[error("failed to look up who is to be told")]
    Topic(#[source] RegistryError),
    /// The notices could not be written.
    #[error("failed to write the notices")]
    FanOut(#[source] FanOutError),
}

impl NoticeAddressee {
    /// Whether an addressee was named, so that notices are at least counted.
    pub fn is_named(&self) -> bool {
        !matches!(self, Self::Nobody)
    }
}

impl<Q, S, C, E> Notifier<'_, Q, S, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Sends notices to the addressee of the topic `about`. When this returns `Ok`, each notice is
    /// durable or was counted as not sent.
    pub async fn send_about_topic(
        &self,
        about: &TopicName,
        notices: &[Notice<'_>],
    ) -> Result<(), NoticeError> {
        let Some(topic) = self.find_topic_about(about, notices).await? else {
            return Ok(());
        };
        let notices: Vec<_> = notices
            .iter()
            .copied()
            .filter(|notice| topic.delivery_failed_notices || !matches!(notice, Notice::Failed(_)))
            .collect();
        if notices.is_empty() {
            return Ok(());
        }
        let to = self.addressee_of(&topic).await?;
        let own: Vec<_> = notices
            .iter()
            .copied()
            .filter(|notice| notice.is_about(&topic))
            .collect();
        if to.is_named() && own.len() < notices.len() {
            let left_out = notices.len() - own.len();
            count_not_sent(Some(about), left_out);
            tracing::warn!(
                topic = %about, notices = left_out,
                "notices not sent: they are about an earlier topic of this name"
            );
        }
        // Boxed, here and below: of the futures around it all, the compiler would find the layout
        // too deep otherwise.
        Box::pin(self.send_to_addressee(Some(about), &to, &own)).await
    }

    /// The topic that notices are about, read again if it seems to be another one of the same name.
    async fn find_topic_about(
        &self,
        about: &TopicName,
        notices: &[Notice<'_>],
    ) -> Result<Option<Arc<Topic>>, NoticeError> {
        let known = self.find_topic(about).await?;
        match &known {
            Some(topic) if !notices.iter().all(|notice| notice.is_about(topic)) => {
                let now = self.fan_out.clock.monotonic();
                self.registry
                    .topic_asked_after(about, now)
                    .await
                    .map_err(NoticeError::Topic)
            }
            _ => Ok(known),
        }
    }

    /// Sends notices that are about no topic to the subscribers of the topic `name`.
    pub async fn send_to_topic(
        &self,
        name: &TopicName,
        notices: &[Notice<'_>],
    ) -> Result<(), NoticeError> {
        let to = self.addressee_named(name).await?;
        Box::pin(self.send_to_addressee(None, &to, notices)).await
    }

    /// The addressee of notices about the topic `about`.
    pub async fn find_addressee(&self, about: &TopicName) -> Result<NoticeAddressee, NoticeError> {
        let Some(topic) = self.find_topic(about).await? else {
            return Ok(NoticeAddressee::Nobody);
        };
        self.addressee_of(&topic).await
    }

    async fn addressee_of(&self, topic: &Topic) -> Result<NoticeAddressee, NoticeError> {
        let Some(name) = &topic.notices_topic else {
            return Ok(NoticeAddressee::Nobody);
        };
        self.addressee_named(name).await
    }

    async fn addressee_named(&self, name: &TopicName) -> Result<NoticeAddressee, NoticeError> {
        let told = self.find_topic(name).await?;
        Ok(told.map_or_else(
            || NoticeAddressee::Missing(name.clone()),
            NoticeAddressee::Topic,
        ))
    }

    /// Sends notices to the addressee, a number of them at a time. `about` is the topic they are
    /// about, if there is one.
    pub async fn send_to_addressee(
        &self,
        about: Option<&TopicName>,
        to: &NoticeAddressee,
        notices: &[Notice<'_>],
    ) -> Result<(), NoticeError> {
        let topic = match to {
            NoticeAddressee::Nobody => return Ok(()),
            NoticeAddressee::Missing(name) => {
                count_not_sent(about, notices.len());
                tracing::error!(
                    topic = about.map(tracing::field::display), notices_topic = %name,
                    notices = notices.len(), "notices not sent: their topic is not there"
                );
                return Ok(());
            }
            NoticeAddressee::Topic(topic) => topic,
        };
        let hops = notices.iter().map(Notice::hops).max().unwrap_or_default();
        let mut events = Vec::new();
        let mut bytes = 0;
        for notice in notices {
            let Some(event) = render_notice(about, topic, notice) else {
                continue;
            };
            bytes += event.json().len();
            events.push(event);
            if bytes >= NOTICES_BYTES_PREFERRED {
                self.write_events(about, topic, &std::mem::take(&mut events), hops)
                    .await?;
                bytes = 0;
            }
        }
        self.write_events(about, topic, &events, hops).await
    }

    async fn write_events(
        &self,
        about: Option<&TopicName>,
        to: &Topic,
        events: &[Event],
        hops: Hops,
    ) -> Result<(), NoticeError> {
        if events.is_empty() {
            return Ok(());
        }
        match Box::pin(self.fan_out.write_events(
            to,
            events,
            InlineEvents::Fitting,
            EventOrigin {
                marks: MARKS,
                hops,
                ..EventOrigin::default()
            },
        ))
        .await
        {
            Ok(_) => {
                metrics::counter!("NoticeSentCount", topic_label(about))
                    .increment(events.len() as u64);
                tracing::info!(
                    topic = about.map(tracing::field::display), notices_topic = %to.name,
                    notices = events.len(), "notices sent"
                );
                Ok(())
            }
            Err(error) if error.port_error().is_none_or(|it| is_final(it.kind)) => {
                count_not_sent(about, events.len());
                tracing::error!(
                    topic = about.map(tracing::field::display), notices_topic = %to.name,
                    notices = events.len(), error = &error as &dyn Error,
                    "notices not sent: they are refused"
                );
                Ok(())
            }
            Err(error) => Err(NoticeError::FanOut(error)),
        }
    }

    /// A topic; `None` also if its record is broken, because waiting would not mend it.
    async fn find_topic(&self, name: &TopicName) -> Result<Option<Arc<Topic>>, NoticeError> {
        let found = self.registry.topic(name).await;
        let error: &dyn Error = match &found {
            Err(RegistryError::Record(error)) => error,
            Err(RegistryError::Store(error)) if error.kind == ErrorKind::Damaged => error,
            Ok(_) | Err(RegistryError::Store(_)) => return found.map_err(NoticeError::Topic),
        };
        tracing::error!(topic = %name, error, "no notices are sent: the topic's record cannot be used");
        Ok(None)
    }
}

/// Whether a write that failed like this would always fail.
fn is_final(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Invalid
    )
}

fn render_notice(about: Option<&TopicName>, to: &Topic, notice: &Notice<'_>) -> Option<Event> {
    let rendered = notice.render_event(to.input_schema).inspect_err(|error| {
        count_not_sent(about, 1);
        tracing::error!(
            topic = about.map(tracing::field::display), notices_topic = %to.name,
            error = error as &dyn Error, "notice not sent: it cannot be rendered"
        );
    });
    rendered.ok()
}

/// Counts notices that will never be sent, by the topic they are about, if there is one.
pub fn count_not_sent(about: Option<&TopicName>, notices: usize) {
    metrics::counter!("NoticeNotSentCount", topic_label(about)).increment(notices as u64);
}

/// The label for the topic that a notice is about; none if it is about none.
fn topic_label(about: Option<&TopicName>) -> Vec<Label> {
    about
        .map(|topic| Label::new("topic", topic.to_string()))
        .into_iter()
        .collect()
}
