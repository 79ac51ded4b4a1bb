//! The test of an advanced filter on a value. Event Grid's rules:
//! <https://learn.microsoft.com/azure/event-grid/event-filtering#operators>

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use memchr::memmem::Finder;

use super::DecimalNumber;
use super::fold::fold_case;
use super::value::FilterValue;

/// The test of a value.
///
/// One of the named values is enough. A negation holds where its opposite does not: also where the
/// key is missing, or its value has another type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FilterTest {
    /// A number, which …
    Number(NumberTest),
    /// No number, which …
    NotNumber(NumberTest),
    /// A string, which …
    Text(TextTest),
    /// No string, which …
    NotText(TextTest),
    /// A boolean of this value.
    Bool(bool),
    /// Missing or null.
    Null,
    /// Neither missing nor null.
    NotNull,
}

/// The test of a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NumberTest {
    /// Equal to one of these.
    In(Box<[DecimalNumber]>),
    /// Within one of these ranges, borders included.
    Within(Box<[(DecimalNumber, DecimalNumber)]>),
    /// Less.
    Less(DecimalNumber),
    /// Less or equal.
    AtMost(DecimalNumber),
    /// Greater.
    Greater(DecimalNumber),
    /// Greater or equal.
    AtLeast(DecimalNumber),
}

/// The test of a string, without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TextTest {
    /// Equal to one of these.
    In(Box<[FoldedText]>),
    /// Begin with one of these.
    BeginsWith(Box<[FoldedText]>),
    /// End with one of these.
    EndsWith(Box<[FoldedText]>),
    /// Contain one of these.
    Contains(Box<[TextFinder]>),
}

/// A folded text that is looked for in others. Equal ones look for the same text.
#[derive(Debug, Clone)]
pub struct TextFinder(Finder<'static>);

/// A text by Unicode's simple case folding, in which texts that differ in case alone are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoldedText(Box<str>);

impl FoldedText {
    /// Folds a text.
    pub fn new(text: &str) -> Self {
        Self(fold_case(text).into())
    }

    /// Finds this text in others.
    pub fn to_finder(&self) -> TextFinder {
        TextFinder(Finder::new(self.0.as_bytes()).into_owned())
    }
}

impl PartialEq for TextFinder {
    fn eq(&self, other: &Self) -> bool {
        self.0.needle() == other.0.needle()
    }
}

impl Eq for TextFinder {}

impl Hash for TextFinder {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.needle().hash(state);
    }
}

impl FilterTest {
    /// Whether the value passes the test. With `arrays`, one fitting element of an array is enough,
    /// and a negation fails by one element that fits its opposite.
    pub(crate) fn passes(&self, value: Option<&FilterValue<'_>>, arrays: bool) -> bool {
        match self {
            Self::Null => value.is_none(),
            Self::NotNull => value.is_some(),
            Self::Bool(expected) => {
                value.is_some_and(|value| value.bools(arrays).contains(expected))
            }
            Self::Number(test) => {
                value.is_some_and(|value| test.matches_any(value.numbers(arrays)))
            }
            Self::NotNumber(test) => {
                !value.is_some_and(|value| test.matches_any(value.numbers(arrays)))
            }
            Self::Text(test) => value.is_some_and(|value| test.matches_any(value.texts(arrays))),
            Self::NotText(test) => {
                !value.is_some_and(|value| test.matches_any(value.texts(arrays)))
            }
        }
    }
}

impl NumberTest {
    /// Whether one of the numbers, which are in order, passes the test.
    fn matches_any(&self, numbers: &[DecimalNumber]) -> bool {
        let least = numbers.first();
        let greatest = numbers.last();
        match self {
            Self::In(values) => values
                .iter()
                .any(|value| numbers.binary_search(value).is_ok()),
            Self::Within(ranges) => ranges.iter().any(|(low, high)| {
                let from = numbers.partition_point(|number| number < low);
                numbers.get(from).is_some_and(|number| number <= high)
            }),
            Self::Less(bound) => least.is_some_and(|number| number < bound),
            Self::AtMost(bound) => least.is_some_and(|number| number <= bound),
            Self::Greater(bound) => greatest.is_some_and(|number| number > bound),
            Self::AtLeast(bound) => greatest.is_some_and(|number| number >= bound),
        }
    }
}

impl TextTest {
    /// Whether one of the texts, which are in order, passes the test.
    fn matches_any(&self, texts: &[Cow<'_, str>]) -> bool {
        match self {
            Self::In(values) => values.iter().any(|value| {
                texts
                    .binary_search_by(|text| (**text).cmp(&value.0))
                    .is_ok()
            }),
            Self::BeginsWith(values) => values.iter().any(|value| {
                let from = texts.partition_point(|text| **text < *value.0);
                texts
                    .get(from)
                    .is_some_and(|text| text.starts_with(&*value.0))
            }),
            Self::EndsWith(values) => values
                .iter()
                .any(|value| texts.iter().any(|text| text.ends_with(&*value.0))),
            Self::Contains(parts) => parts.iter().any(|part| {
                texts
                    .iter()
                    .any(|text| part.0.find(text.as_bytes()).is_some())
            }),
        }
    }
}
