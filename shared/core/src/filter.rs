//! Filters that decide which events of a topic a subscription receives: by type, by subject, and by
//! Event Grid's advanced filters.

mod fold;
mod key;
mod names;
mod number;
mod operator;
mod rule;
mod set;
mod test;
#[cfg(test)]
mod tests;
mod value;

pub use self::key::{Key, KeyError};
pub use self::number::{Magnitude, Number};
pub use self::operator::FilterOperator;
pub use self::rule::{Condition, Filter};
pub use self::set::{FilterSet, Matches};
pub use self::test::{Folded, NumberTest, Part, Test, TextTest};
