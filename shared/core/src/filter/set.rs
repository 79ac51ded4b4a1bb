//! The filters of a topic together: every event is looked at once, however many filters ask for the same.

use std::collections::HashMap;
use std::sync::Arc;

use super::Filter;
use super::key::{Attribute, Place};
use super::names::{Names, Slot};
use super::value::Value;
use crate::event::Event;

/// The filters of a topic's subscriptions, with their keys looked up beforehand.
#[derive(Debug, Default)]
pub struct FilterSet {
    filters: Vec<Prepared>,
    /// How many different keys there are.
    keys: usize,
    attributes: Vec<(Attribute, usize)>,
    members: Names,
}

#[derive(Debug)]
struct Prepared {
    filter: Arc<Filter>,
    /// For each condition of the filter, which of the values it is about.
    keys: Box<[usize]>,
}

/// Which filters of a set let which events of a request through.
#[derive(Debug)]
pub struct Matches {
    events: usize,
    /// One filter after the other.
    passed: Vec<bool>,
}

/// What one event has under each key.
struct Values<'e> {
    by_key: Vec<Option<Value<'e>>>,
    /// Where there is something.
    filled: Vec<usize>,
    is_read: bool,
}

impl FilterSet {
    /// Prepares filters. Their positions are those in which they come.
    pub fn of(filters: impl IntoIterator<Item = Arc<Filter>>) -> Self {
        let mut places: HashMap<Place, (usize, bool)> = HashMap::new();
        let mut prepare = |filter: Arc<Filter>| {
            let mut key = |place: &Place| {
                let next = places.len();
                let (index, has_arrays) = places.entry(place.clone()).or_insert((next, false));
                *has_arrays |= filter.arrays;
                *index
            };
            let keys = filter.advanced.iter().map(|condition| key(&condition.key.0)).collect();
            Prepared { filter, keys }
        };
        let filters = filters.into_iter().map(&mut prepare).collect();
        let mut set = Self { filters, keys: places.len(), ..Self::default() };
        for (place, (index, has_arrays)) in places {
            set.look_up(place, index, has_arrays);
        }
        set
    }

    fn look_up(&mut self, place: Place, index: usize, has_arrays: bool) {
        let slot = |is_extension| Slot { index, is_extension, has_arrays };
        match place {
            Place::Attribute(attribute) => self.attributes.push((attribute, index)),
            Place::Member(path) => self.members.insert(&path, slot(false)),
            Place::Extension(name) => self.members.insert(&[name], slot(true)),
        }
    }

    /// Matches every event with every filter. An event's text is read only if a filter gets as far as its keys, and
    /// only if those are not among the attributes that were read before.
    pub fn matches(&self, events: &[Event]) -> Matches {
        let mut passed = vec![false; self.filters.len() * events.len()];
        let mut values = Values::new(self.keys);
        for (number, event) in events.iter().enumerate() {
            values.clear();
            for (position, prepared) in self.filters.iter().enumerate() {
                passed[position * events.len() + number] = self.passes(prepared, event, &mut values);
            }
        }
        Matches { events: events.len(), passed }
    }

    fn passes<'e>(&self, prepared: &Prepared, event: &'e Event, values: &mut Values<'e>) -> bool {
        let filter = &prepared.filter;
        if !filter.includes(event) {
            return false;
        }
        if !values.is_read && !prepared.keys.is_empty() {
            self.read(event, values);
        }
        let mut conditions = filter.advanced.iter().zip(&prepared.keys);
        conditions.all(|(condition, key)| condition.test.passes(values.by_key[*key].as_ref(), filter.arrays))
    }

    fn read<'e>(&self, event: &'e Event, values: &mut Values<'e>) {
        values.is_read = true;
        for (attribute, index) in &self.attributes {
            if let Some(text) = attribute.of(event) {
                values.fill(*index, Value::text(text.into()));
            }
        }
        // An event's text was UTF-8 when it was accepted.
        if !self.members.is_empty()
            && let Ok(text) = std::str::from_utf8(event.json())
        {
            self.members.read(text, &mut |index, value| values.fill(index, value));
        }
    }
}

impl Matches {
    /// The events that the filter at this position lets through, by their positions, in order.
    pub fn of(&self, position: usize) -> impl Iterator<Item = u32> {
        let start = position.saturating_mul(self.events);
        let row = self.passed.get(start..start.saturating_add(self.events)).unwrap_or_default();
        (0..).zip(row).filter(|(_, passed)| **passed).map(|(number, _)| number)
    }
}

impl<'e> Values<'e> {
    fn new(keys: usize) -> Self {
        Self {
            by_key: std::iter::repeat_with(|| None).take(keys).collect(),
            filled: Vec::new(),
            is_read: false,
        }
    }

    fn fill(&mut self, index: usize, value: Value<'e>) {
        self.by_key[index] = Some(value);
        self.filled.push(index);
    }

    /// Forgets an event, at the price of what it had.
    fn clear(&mut self) {
        for index in self.filled.drain(..) {
            self.by_key[index] = None;
        }
        self.is_read = false;
    }
}
