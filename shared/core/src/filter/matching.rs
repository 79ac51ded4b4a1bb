//! The filters of a topic together: every event is read once, and each of their questions is asked
//! once, however many filters share it.

use crate::events::Event;
use crate::model::filter::{
    Filter, FilterQuestion, FilterSet, FilterValue, KeyAttribute, PreparedFilter,
};

/// The events of a request that each filter of a set lets through.
#[derive(Debug)]
pub struct FilterMatches {
    events: usize,
    /// One filter after the other.
    passed: Vec<bool>,
    /// The filters that let something through, in order.
    passing: Vec<usize>,
}

/// The values that one event has under each key.
struct EventValues<'e> {
    by_key: Vec<Option<FilterValue<'e>>>,
    /// The keys that have a value.
    filled: Vec<usize>,
    /// The answer to each question that was asked.
    answers: Vec<Option<bool>>,
    is_read: bool,
}

impl FilterSet {
    /// Matches every event with every filter that may let its type through. An event's text is read
    /// only if a filter gets as far as its keys, and only if those are not among the attributes
    /// that were read before.
    pub fn match_events(&self, events: &[Event]) -> FilterMatches {
        let mut passed = vec![false; self.filters.len() * events.len()];
        let mut is_passing = vec![false; self.filters.len()];
        let mut values = EventValues::new(self.keys, self.questions.len());
        for (number, event) in events.iter().enumerate() {
            values.clear();
            let of_type = self.of_type.get(event.event_type()).into_iter().flatten();
            for &position in of_type.chain(&self.of_any_type) {
                if self.passes_filter(&self.filters[position], event, &mut values) {
                    passed[position * events.len() + number] = true;
                    is_passing[position] = true;
                }
            }
        }
        let passing = is_passing
            .iter()
            .enumerate()
            .filter(|(_, is)| **is)
            .map(|(position, _)| position);
        FilterMatches {
            events: events.len(),
            passed,
            passing: passing.collect(),
        }
    }

    fn passes_filter<'e>(
        &self,
        prepared: &PreparedFilter,
        event: &'e Event,
        values: &mut EventValues<'e>,
    ) -> bool {
        let filter = &prepared.filter;
        if !filter.includes_event(event) {
            return false;
        }
        if !values.is_read && !prepared.questions.is_empty() {
            self.read_values(event, values);
        }
        prepared
            .questions
            .iter()
            .all(|question| match values.answers[*question] {
                Some(answer) => answer,
                None => self.ask_question(*question, values),
            })
    }

    fn ask_question(&self, question: usize, values: &mut EventValues<'_>) -> bool {
        let FilterQuestion {
            filter,
            condition,
            key,
        } = &self.questions[question];
        let test = &filter.advanced[*condition].test;
        let answer = test.passes(values.by_key[*key].as_ref(), filter.arrays);
        values.answers[question] = Some(answer);
        answer
    }

    fn read_values<'e>(&self, event: &'e Event, values: &mut EventValues<'e>) {
        values.is_read = true;
        for (attribute, index) in &self.attributes {
            if let Some(text) = attribute.value_in(event) {
                values.set_value(*index, FilterValue::from_text(text.into()));
            }
        }
        // An event's text was UTF-8 when it was accepted.
        if !self.members.is_empty()
            && let Ok(text) = std::str::from_utf8(event.json())
        {
            self.members
                .read_values(text, &mut |index, value| values.set_value(index, value));
        }
    }
}

impl FilterMatches {
    /// The positions of the filters that let at least one event through, in order.
    pub fn passing_filters(&self) -> &[usize] {
        &self.passing
    }

    /// The events that the filter at this position lets through, by their positions, in order.
    pub fn passing_events(&self, position: usize) -> impl Iterator<Item = u32> {
        let start = position.saturating_mul(self.events);
        let row = self
            .passed
            .get(start..start.saturating_add(self.events))
            .unwrap_or_default();
        (0..)
            .zip(row)
            .filter(|(_, passed)| **passed)
            .map(|(number, _)| number)
    }
}

impl<'e> EventValues<'e> {
    fn new(keys: usize, questions: usize) -> Self {
        Self {
            by_key: std::iter::repeat_with(|| None).take(keys).collect(),
            filled: Vec::new(),
            answers: vec![None; questions],
            is_read: false,
        }
    }

    fn set_value(&mut self, index: usize, value: FilterValue<'e>) {
        self.by_key[index] = Some(value);
        self.filled.push(index);
    }

    /// Forgets an event. The cost follows the values that it had and the questions that were asked,
    /// and not the size of the set.
    fn clear(&mut self) {
        if self.is_read {
            self.answers.fill(None);
        }
        for index in self.filled.drain(..) {
            self.by_key[index] = None;
        }
        self.is_read = false;
    }
}

impl Filter {
    /// Whether type and subject are let through. A missing subject counts as an empty one.
    pub(crate) fn includes_event(&self, event: &Event) -> bool {
        self.includes_type(event.event_type())
            && self.includes_subject(event.subject().unwrap_or_default())
    }
}

impl KeyAttribute {
    /// The attribute of this event.
    fn value_in(self, event: &Event) -> Option<&str> {
        match self {
            Self::Id => Some(event.id()),
            Self::Type => Some(event.event_type()),
            Self::Source => event.source(),
            Self::Subject => event.subject(),
            Self::Topic => event.envelope().map(|envelope| &*envelope.topic),
            Self::DataVersion => event.envelope().map(|envelope| &*envelope.data_version),
        }
    }
}

#[cfg(test)]
mod tests;
