//! The filters of a topic together: every event is looked at once, and every question asked of it
//! once, however many filters ask the same.

use std::collections::HashMap;
use std::sync::Arc;

use super::key::{KeyAttribute, KeyLocation};
use super::names::{NameTree, ValueSlot};
use super::{Filter, FilterCondition};

/// The filters of a topic's subscriptions, with their keys looked up beforehand.
#[derive(Debug, Default)]
pub struct FilterSet {
    pub(crate) filters: Vec<PreparedFilter>,
    /// The filters that name an event type, by that type.
    pub(crate) of_type: HashMap<String, Vec<usize>>,
    /// The filters that let every type through.
    pub(crate) of_any_type: Vec<usize>,
    /// The questions of all filters' conditions, each once.
    pub(crate) questions: Vec<FilterQuestion>,
    /// The number of different keys.
    pub(crate) keys: usize,
    pub(crate) attributes: Vec<(KeyAttribute, usize)>,
    pub(crate) members: NameTree,
}

#[derive(Debug)]
pub(crate) struct PreparedFilter {
    pub(crate) filter: Arc<Filter>,
    /// For each condition of the filter, which question it asks.
    pub(crate) questions: Box<[usize]>,
}

/// A question that conditions ask of an event, be it one filter's or hundreds'.
#[derive(Debug)]
pub(crate) struct FilterQuestion {
    /// The first filter that asks it, and by which of its conditions.
    pub(crate) filter: Arc<Filter>,
    pub(crate) condition: usize,
    /// The value that it is about.
    pub(crate) key: usize,
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
        let slot = ValueSlot {
            index,
            is_extension: matches!(place, KeyLocation::Extension(_)),
            has_arrays,
        };
        match place {
            KeyLocation::Attribute(attribute) => self.attributes.push((attribute, index)),
            KeyLocation::Member(path) => self.members.insert(&path, slot),
            KeyLocation::Extension(name) => self.members.insert(&[name], slot),
        }
    }
}
