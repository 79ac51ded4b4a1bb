//! Filters that decide which events of a topic a subscription receives: by type, by subject, and by
//! Event Grid's advanced filters. Their data is in [`crate::model::filter`].

mod matching;
#[cfg(test)]
mod tests;

pub use self::matching::FilterMatches;
