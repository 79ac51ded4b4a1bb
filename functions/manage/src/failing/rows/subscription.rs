//! The row of one subscription.

use std::time::Duration;

use posthaste_core::api::{
    ArrivalView, FailingState, FailingTarget, IsoTimestamp, KnownHealth, LinkScope, NextAttempt,
    StatusState, SubscriptionHealthView, WaitingCount,
};
use posthaste_core::circuit::{DeliveryTarget, TargetCondition, TargetPhase};
use posthaste_core::health::{HealthState, SubscriptionHealth, book_key};
use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{EndpointUrl, Link, SubscriptionName, Timestamp, TopicName};

use super::super::known::Candidate;
use super::{LoadedTopic, RowSource, told_of};

/// The time of which the share is shown.
const SHARE_TIME: Duration = Duration::from_hours(1);

/// A subscription at its endpoint.
struct KnownSubscription<'a> {
    topic: &'a TopicName,
    name: &'a SubscriptionName,
    /// The status and since when it has it; active where the topic could not be read.
    status: StatusState,
    status_since: Option<Timestamp>,
    status_reason: Option<&'a str>,
    /// `None` if the endpoint cannot be read.
    link: Option<Link>,
    is_unrecorded: bool,
    /// The topic that gets the notices of its topic.
    notices_topic: Option<&'a TopicName>,
}

/// The facts that are known of a subscription.
struct RowFacts<'a> {
    status: StatusState,
    health: Option<&'a SubscriptionHealth>,
    /// The circuit's conditions of the subscription, and of its link.
    conditions: [Option<&'a TargetCondition>; 2],
    is_circuit_known: bool,
    waiting: Option<WaitingCount>,
    /// The number of events that it misses while it is disabled.
    missed: u64,
    view: SubscriptionHealthView,
}

impl RowSource<'_> {
    /// The row of a subscription, with its topic as it was read; `None` of one that is well or
    /// gone.
    pub(super) fn subscription_row(
        &self,
        candidate: &Candidate,
        topic: Option<&LoadedTopic>,
    ) -> Option<FailingTarget> {
        match topic {
            Some(LoadedTopic::Gone) => None,
            Some(LoadedTopic::Record {
                record,
                is_unrecorded,
            }) => {
                let (name, settings) = record.settings.find_subscription(&candidate.name)?;
                let endpoint = EndpointUrl::parse(&settings.endpoint.url).ok();
                let status = settings.status.as_ref();
                let status = status.map(|status| status.effective_at(self.now));
                let subscription = KnownSubscription {
                    topic: &record.name,
                    name,
                    status: status
                        .as_ref()
                        .map_or(StatusState::Active, |status| status.state),
                    status_since: status.as_ref().map(|status| status.since.0),
                    status_reason: status.as_ref().and_then(|status| status.reason.as_deref()),
                    link: endpoint.map(|url| url.link()),
                    is_unrecorded: *is_unrecorded,
                    notices_topic: record.settings.notices_topic.as_ref(),
                };
                let facts = self.collect_facts(&subscription);
                let state = facts.failing_state()?;
                Some(self.known_row(&subscription, &facts, state))
            }
            Some(LoadedTopic::Unreadable) | None => {
                candidate.is_certain.then(|| self.unknown_row(candidate))
            }
        }
    }

    fn known_row(
        &self,
        subscription: &KnownSubscription<'_>,
        facts: &RowFacts<'_>,
        state: FailingState,
    ) -> FailingTarget {
        let next = facts.next_attempt();
        let last = facts.conditions.into_iter().flatten().next();
        let last = last.map(|condition| condition.last);
        let is_of_link = facts.conditions[1].is_some()
            || facts
                .health
                .and_then(|health| health.incident.as_ref())
                .is_some_and(|incident| incident.link.is_some());
        let scope = if is_of_link {
            LinkScope::Link
        } else {
            LinkScope::Subscription
        };
        let waiting = facts
            .waiting
            .map(|count| Box::new(count.waiting_view(next)));
        let notices_topics = self.notices.topics(subscription.notices_topic);
        FailingTarget {
            scope,
            link: subscription.link.as_ref().map(ToString::to_string),
            topic: Some(subscription.topic.clone()),
            subscription: Some(subscription.name.clone()),
            state,
            reason: subscription
                .status_reason
                .filter(|_| state.is_stopped())
                .map(str::to_owned),
            since: facts.since(),
            last_failure_at: facts.view.last_failure_at,
            last_outcome: facts.view.last_outcome.or(last.map(|last| last.outcome)),
            last_http_status_code: match facts.view.last_outcome {
                Some(_) => facts.view.last_http_status_code,
                None => last.and_then(|last| last.status),
            },
            hour: self.share_of_hour(facts.health),
            waiting,
            missed: facts.missed,
            next_attempt_at: next.map(IsoTimestamp),
            told: told_of(self.is_told(facts), &notices_topics),
            notices_topics,
            others: 0,
        }
    }

    /// The row of a subscription whose topic cannot be read, as if it were active: it keeps its
    /// place when the topic can be read again.
    fn unknown_row(&self, candidate: &Candidate) -> FailingTarget {
        let subscription = KnownSubscription {
            topic: &candidate.topic,
            name: &candidate.name,
            status: StatusState::Active,
            status_since: None,
            status_reason: None,
            link: candidate.link.clone(),
            is_unrecorded: false,
            notices_topic: None,
        };
        let facts = self.collect_facts(&subscription);
        self.known_row(&subscription, &facts, FailingState::Unknown)
    }

    fn collect_facts(&self, subscription: &KnownSubscription<'_>) -> RowFacts<'_> {
        let KnownSubscription {
            topic,
            name,
            status,
            status_since,
            link,
            is_unrecorded,
            ..
        } = subscription;
        let conditions = match link {
            None => [None, None],
            Some(link) => {
                let own = DeliveryTarget::Subscription {
                    link: link.clone(),
                    topic: (*topic).clone(),
                    name: (*name).clone(),
                };
                [own, DeliveryTarget::Link(link.clone())]
                    .map(|target| self.known.condition(&target))
            }
        };
        let health = self.known.book.subscription(&book_key(topic, name));
        let known = KnownHealth {
            status: *status,
            status_since: *status_since,
            health,
            conditions,
            is_seen: true,
        };
        let mut waiting = self
            .known
            .waiting
            .as_ref()
            .map(|waiting| waiting.for_subscription(topic, name));
        if let Some(count) = waiting.as_mut().filter(|_| *is_unrecorded) {
            count.forget_recorded();
        }
        RowFacts {
            status: *status,
            health,
            conditions,
            is_circuit_known: self.known.is_circuit_known(),
            waiting,
            missed: self.known.missed_events(topic, name),
            view: SubscriptionHealthView::from_known(known, self.now, self.settings),
        }
    }

    /// Whether the notice of its incident was sent; `None` while it is in none. That of one that a
    /// link is the cause of is the link's.
    fn is_told(&self, facts: &RowFacts<'_>) -> Option<bool> {
        let incident = facts.health?.incident.as_ref()?;
        match &incident.link {
            None => Some(incident.told),
            Some(link) => Some(self.known.link_incident(link)?.told),
        }
    }

    fn share_of_hour(&self, health: Option<&SubscriptionHealth>) -> Option<ArrivalView> {
        let hour = hour_before(self.now);
        ArrivalView::from_share(health?.tries.share_since(hour))
    }
}

impl RowFacts<'_> {
    /// The state in which the subscription has a row; `None` if it is well, or stopped without
    /// anything that waits or was missed.
    fn failing_state(&self) -> Option<FailingState> {
        let stopped = match self.view.state {
            HealthState::Paused => Some(FailingState::Paused),
            HealthState::Pending => Some(FailingState::Pending),
            HealthState::Refused => Some(FailingState::Refused),
            HealthState::Disabled => Some(FailingState::Disabled),
            _ => None,
        };
        let waits = self.waiting.is_some_and(|count| count.total() > 0);
        if stopped.is_some() {
            return stopped.filter(|_| waits || self.missed > 0);
        }
        let mut conditions = self.conditions.into_iter().flatten();
        let is_known = conditions.clone().next().is_some();
        let is_recovering = conditions.all(|it| it.phase == TargetPhase::Recovering);
        let incident = self.health.and_then(|health| health.incident.as_ref());
        let is_over = incident.is_some_and(|incident| incident.recovered_at.is_some());
        if (is_known && is_recovering) || (is_over && !is_known) {
            return Some(FailingState::Recovering);
        }
        match self.view.state {
            HealthState::Failing => Some(FailingState::Failing),
            HealthState::Down => Some(FailingState::Down),
            _ if self.is_asked_to_wait() => Some(FailingState::AskedToWait),
            // A second endpoint takes its events.
            _ if is_known => Some(FailingState::Failing),
            // What was held goes out, unless the circuit holds it still.
            _ => {
                let state = if self.is_circuit_known {
                    FailingState::Recovering
                } else {
                    FailingState::Unknown
                };
                self.waiting
                    .is_some_and(|count| count.held > 0)
                    .then_some(state)
            }
        }
    }

    /// The time of the next request: where something waits, or may wait, or it is not known what.
    fn next_attempt(&self) -> Option<Timestamp> {
        let next = NextAttempt::new(self.status, self.conditions[1], self.conditions[0]);
        let Some(count) = self.waiting else {
            return next.for_event(None);
        };
        let may_wait = count.total() > 0 || count.waiting_view(None).at_least;
        next.for_waiting(&count)
            .or_else(|| next.for_event(None).filter(|_| may_wait))
    }

    fn is_asked_to_wait(&self) -> bool {
        self.conditions
            .into_iter()
            .flatten()
            .any(TargetCondition::is_pause)
    }

    /// The time since which events do not arrive, also while it recovers.
    fn since(&self) -> Option<IsoTimestamp> {
        let incident = self.health.and_then(|health| health.incident.as_ref());
        let failing = self
            .conditions
            .into_iter()
            .flatten()
            .map(|condition| condition.failing_since);
        let since = incident.map(|incident| incident.since).or(failing.min());
        self.view.since.or(since.map(IsoTimestamp))
    }
}

fn hour_before(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.as_millis().saturating_sub(whole_millis(SHARE_TIME)))
}
