//! The filters of a topic together: every event is read once, and each of their questions is asked
//! once, however many filters share it.

use std::collections::HashMap;
use std::sync::Arc;

use super::key::{KeyAttribute, KeyLocation};
use super::names::{NameTree, ValueSlot};
use super::value::FilterValue;
use super::{Filter, FilterCondition};
use crate::events::Event;

/// The filters of a topic's subscriptions, with their keys looked up beforehand.
#[derive(Debug, Default)]
pub struct FilterSet {
    filters: Vec<PreparedFilter>,
    /// The filters that name an event type, by that type.
    of_type: HashMap<String, Vec<usize>>,
    /// The filters that let every type through.
    of_any_type: Vec<usize>,
    /// The questions of all filters' conditions, each once.
    questions: Vec<FilterQuestion>,
    /// The number of different keys.
    keys: usize,
    attributes: Vec<(KeyAttribute, usize)>,
    members: NameTree,
}

#[derive(Debug)]
struct PreparedFilter {
    filter: Arc<Filter>,
    /// For each condition of the filter, which question it asks.
    questions: Box<[usize]>,
}

/// A question about an event that the conditions of one or many filters ask.
#[derive(Debug)]
struct FilterQuestion {
    /// The first filter that asks it, and the condition by which it does.
    filter: Arc<Filter>,
    condition: usize,
    /// The value that it is about.
    key: usize,
}

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
    /// Prepares filters. Their positions are those in which they come.
    pub fn from_filters(filters: impl IntoIterator<Item = Arc<Filter>>) -> Self {
        let filters: Vec<_> = filters.into_iter().collect();
        let mut places = HashMap::new();
        let mut asked = HashMap::new();
        let mut set = Self::default();
        for (position, filter) in filters.iter().enumerate() {
            set.look_up_type(position, filter);
            let mut questions = Vec::with_capacity(filter.advanced.len());
            for (condition, FilterCondition { key, test }) in filter.advanced.iter().enumerate() {
                let next = places.len();
                let (key, has_arrays) = places.entry(key.0.clone()).or_insert((next, false));
                *has_arrays |= filter.arrays;
                // An equal test of the same value has the same answer, if both look into arrays or
                // neither does.
                questions.push(
                    *asked.entry((*key, filter.arrays, test)).or_insert_with(|| {
                        set.questions.push(FilterQuestion {
                            filter: Arc::clone(filter),
                            condition,
                            key: *key,
                        });
                        set.questions.len() - 1
                    }),
                );
            }
            set.filters.push(PreparedFilter {
                filter: Arc::clone(filter),
                questions: questions.into(),
            });
        }
        set.keys = places.len();
        for (place, (index, has_arrays)) in places {
            set.look_up(place, index, has_arrays);
        }
        set
    }

    fn look_up_type(&mut self, position: usize, filter: &Filter) {
        if filter.includes_all_types() {
            self.of_any_type.push(position);
            return;
        }
        for event_type in &filter.included_event_types {
            self.of_type
                .entry(event_type.clone())
                .or_default()
                .push(position);
        }
    }

    fn look_up(&mut self, place: KeyLocation, index: usize, has_arrays: bool) {
        let slot = |is_extension| ValueSlot {
            index,
            is_extension,
            has_arrays,
        };
        match place {
            KeyLocation::Attribute(attribute) => self.attributes.push((attribute, index)),
            KeyLocation::Member(path) => self.members.insert(&path, slot(false)),
            KeyLocation::Extension(name) => self.members.insert(&[name], slot(true)),
        }
    }

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

#[cfg(test)]
mod tests;
