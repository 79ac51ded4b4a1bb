//! The questions of one search, which the API answers side by side.

use std::time::Duration;

use futures_util::future::join;
use posthaste_core::api::events::IdInUrl;
use posthaste_core::api::{DeadLetterView, FoundEvents, FoundSubscription, FoundSubscriptions};

use super::guess::SearchGuess;
use super::query::SearchPageQuery;
use super::rows::letter_address;
use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::filters::ROWS_MAX;

/// The time for the log where the text may be the name of a subscription: who looks for that one does
/// not wait for a search of every hour.
const LOG_TIME_BESIDE_NAME: Duration = Duration::from_secs(2);

/// Most subscriptions of each list beside other lists, so that the page stays short.
const ROWS_BESIDE_OTHERS_MAX: usize = 25;

/// An answer of the API; `None` where the question did not fit the text.
pub(super) type Answer<T> = Option<Result<T, ApiRefusal>>;

/// The same, as pages read it.
pub(super) type AnswerRef<'a, T> = Option<&'a Result<T, ApiRefusal>>;

/// The answers.
pub(super) struct SearchAnswers {
    /// The events of an id or a `webhook-id`, and the letters of a key.
    pub(super) events: Answer<FoundEvents>,
    /// The subscriptions of a name.
    pub(super) by_name: Answer<FoundSubscriptions>,
    /// The subscriptions of a URL that were not found by their names.
    pub(super) by_url: Answer<FoundSubscriptions>,
}

impl SearchAnswers {
    /// Asks all that fits the text, or only for the next page of one list.
    pub(super) async fn load(
        api: &ManageApi,
        asked: &SearchPageQuery,
        text: &str,
        guess: SearchGuess,
    ) -> Self {
        let is_first = !asked.is_next_page();
        let name = guess
            .name(text)
            .filter(|_| is_first || asked.names.is_some());
        let url = guess.url(text).filter(|_| is_first || asked.urls.is_some());
        let has_events = !asked.is_of_subscriptions();
        let limit = if is_first {
            ROWS_BESIDE_OTHERS_MAX
        } else {
            ROWS_MAX
        };
        // One after the other: the second finds the topics that the first one has read.
        let subscriptions = async {
            let names = asked.names.as_deref();
            let by_name = load_subscriptions(api, ("name", name), names, limit).await;
            let urls = asked.urls.as_deref();
            let by_url = load_subscriptions(api, ("url", url), urls, limit).await;
            (by_name, by_url)
        };
        let log = log_within(api, asked, guess);
        let events = load_events(&log, asked, has_events.then_some(text));
        let (events, (by_name, by_url)) = join(events, subscriptions).await;
        let mut answers = Self {
            events,
            by_name,
            by_url,
        };
        answers.show_each_subscription_once();
        answers
    }

    /// The first question that was refused.
    pub(super) fn first_refusal(&self) -> Option<&ApiRefusal> {
        let subscriptions = [self.by_name.as_ref(), self.by_url.as_ref()];
        let subscriptions = subscriptions.into_iter().filter_map(answer_refusal);
        answer_refusal(self.events.as_ref())
            .into_iter()
            .chain(subscriptions)
            .next()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events().is_none_or(has_no_event)
            && self.subscriptions().next().is_none()
            && self.first_refusal().is_none()
    }

    /// The page of the only hit, if there is one alone. The events of dead letters are no hits
    /// beside these, and a search that has not ended may still find more.
    pub(super) fn only_hit(&self, asked: &SearchPageQuery) -> Option<PageAddress> {
        if self.first_refusal().is_some() || asked.is_next_page() {
            return None;
        }
        let mut subscriptions = self.subscriptions();
        let first = subscriptions.next();
        let is_log_whole = !self.is_log_cut();
        let events = self.events().map_or(&[][..], |found| &found.events);
        match (self.letters(), events, first) {
            ([letter], _, None) => Some(letter_address(letter)),
            ([], [event], None) if is_log_whole => Some(
                PageAddress::for_event(&event.topic, &event.id)
                    .query("from", asked.from.as_deref())
                    .query("to", asked.to.as_deref()),
            ),
            ([], [], Some(only))
                if subscriptions.next().is_none() && self.is_whole() && is_log_whole =>
            {
                Some(PageAddress::for_subscription(
                    only.topic.as_str(),
                    only.name.as_str(),
                ))
            }
            _ => None,
        }
    }

    /// Whether the log was not searched to its end, so that it may have more.
    pub(super) fn is_log_cut(&self) -> bool {
        self.events().is_some_and(|found| found.is_cut_short)
    }

    fn events(&self) -> Option<&FoundEvents> {
        self.events.as_ref()?.as_ref().ok()
    }

    fn letters(&self) -> &[DeadLetterView] {
        self.events().map_or(&[][..], |found| &found.dead_letters)
    }

    fn subscriptions(&self) -> impl Iterator<Item = &FoundSubscription> {
        self.pages().flat_map(|found| &found.subscriptions)
    }

    fn pages(&self) -> impl Iterator<Item = &FoundSubscriptions> {
        let answers = [&self.by_name, &self.by_url];
        answers
            .into_iter()
            .filter_map(|answer| answer.as_ref()?.as_ref().ok())
    }

    /// Whether the subscriptions of all topics were searched.
    fn is_whole(&self) -> bool {
        self.pages().all(|found| found.cursor.is_none())
    }

    fn show_each_subscription_once(&mut self) {
        if let (Some(Ok(by_name)), Some(Ok(by_url))) = (&self.by_name, &mut self.by_url) {
            by_url
                .subscriptions
                .retain(|it| !by_name.subscriptions.contains(it));
        }
    }
}

/// Whether an answer has neither an event nor a dead letter.
pub(super) fn has_no_event(found: &FoundEvents) -> bool {
    found.events.is_empty() && found.dead_letters.is_empty()
}

fn answer_refusal<T>(answer: AnswerRef<'_, T>) -> Option<&ApiRefusal> {
    answer?.as_ref().err()
}

/// The API whose search of the log is no longer than the page waits for it.
fn log_within(api: &ManageApi, asked: &SearchPageQuery, guess: SearchGuess) -> ManageApi {
    if guess == SearchGuess::IdOrName && !asked.long {
        api.within(LOG_TIME_BESIDE_NAME)
    } else {
        api.clone()
    }
}

/// Loads the events that a text leads to. White space around it may be the producer's, or come from
/// where it was copied.
async fn load_events(
    api: &ManageApi,
    asked: &SearchPageQuery,
    text: Option<&str>,
) -> Answer<FoundEvents> {
    let text = text?;
    let trimmed = text.trim();
    if trimmed == text || trimmed.is_empty() {
        return Some(ask_for_events(api, asked, text).await);
    }
    let (found, of_trimmed) = join(
        ask_for_events(api, asked, text),
        ask_for_events(api, asked, trimmed),
    )
    .await;
    let is_found = found.as_ref().map_or(true, |found| !has_no_event(found));
    Some(if is_found { found } else { of_trimmed })
}

async fn ask_for_events(
    api: &ManageApi,
    asked: &SearchPageQuery,
    text: &str,
) -> Result<FoundEvents, ApiRefusal> {
    let carried = IdInUrl::for_id(text);
    let target = RequestTarget::new(&["events", carried.path_segment()]);
    let target = match carried.query_parameter() {
        Some((name, value)) => target.query(name, Some(value)),
        None => target,
    };
    let target = target.query("from", asked.from.as_deref());
    api.get(target.query("to", asked.to.as_deref())).await
}

async fn load_subscriptions(
    api: &ManageApi,
    (parameter, value): (&str, Option<&str>),
    cursor: Option<&str>,
    limit: usize,
) -> Answer<FoundSubscriptions> {
    let value = value?;
    let target = RequestTarget::new(&["subscriptions"])
        .query(parameter, Some(value))
        .query("limit", Some(limit))
        .query("cursor", cursor);
    Some(api.get(target).await)
}
