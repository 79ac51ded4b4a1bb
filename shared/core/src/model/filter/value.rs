//! The value that an event has under a key, sorted by type for the tests.

use std::borrow::Cow;
use std::slice;

use super::DecimalNumber;
use super::fold::fold_cow;

/// The value under a key. There is none where the key is missing or null: no operator tells the two
/// apart.
#[derive(Debug)]
pub(crate) enum FilterValue<'e> {
    /// A string, folded.
    Text(Cow<'e, str>),
    /// A number.
    Number(DecimalNumber),
    /// A boolean.
    Bool(bool),
    /// An extension attribute of a CloudEvent. In binary mode it is text whatever its type, so it
    /// is taken as every type that its canonical text can be read as, and passes the same
    /// filters in either mode. <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md#type-system>
    Attribute(Box<ValueElements<'e>>),
    /// An array's elements. Only filters that ask for it look into arrays.
    Array(Box<ValueElements<'e>>),
    /// An object, or an array that no filter looks into.
    Opaque,
}

/// Values by their type, each list sorted, so that a long array costs no more than a short one.
#[derive(Debug, Default)]
pub(crate) struct ValueElements<'e> {
    texts: Vec<Cow<'e, str>>,
    numbers: Vec<DecimalNumber>,
    bools: Vec<bool>,
}

impl<'e> FilterValue<'e> {
    /// A string.
    pub(crate) fn from_text(text: Cow<'e, str>) -> Self {
        Self::Text(fold_cow(text))
    }

    /// An extension attribute, from its canonical text.
    pub(crate) fn from_attribute(text: Cow<'e, str>) -> Self {
        let numbers = DecimalNumber::parse(&text).into_iter().collect();
        let bools = text.parse().into_iter().collect();
        Self::Attribute(Box::new(ValueElements {
            texts: vec![fold_cow(text)],
            numbers,
            bools,
        }))
    }

    /// The strings in it, in order. With `arrays`, those of an array too.
    pub(crate) fn texts(&self, arrays: bool) -> &[Cow<'e, str>] {
        match self {
            Self::Text(text) => slice::from_ref(text),
            _ => self
                .elements(arrays)
                .map_or(&[], |elements| &elements.texts),
        }
    }

    /// The numbers in it, in order. With `arrays`, those of an array too.
    pub(crate) fn numbers(&self, arrays: bool) -> &[DecimalNumber] {
        match self {
            Self::Number(number) => slice::from_ref(number),
            _ => self
                .elements(arrays)
                .map_or(&[], |elements| &elements.numbers),
        }
    }

    /// The booleans in it, in order. With `arrays`, those of an array too.
    pub(crate) fn bools(&self, arrays: bool) -> &[bool] {
        match self {
            Self::Bool(bool) => slice::from_ref(bool),
            _ => self
                .elements(arrays)
                .map_or(&[], |elements| &elements.bools),
        }
    }

    fn elements(&self, arrays: bool) -> Option<&ValueElements<'e>> {
        match self {
            Self::Attribute(elements) => Some(elements),
            Self::Array(elements) if arrays => Some(elements),
            _ => None,
        }
    }
}

impl<'e> ValueElements<'e> {
    /// Takes one element. An element that is neither a string nor a number nor a boolean is
    /// ignored: "Event Grid doesn't support filtering on an array of objects".
    pub(crate) fn push(&mut self, value: FilterValue<'e>) {
        match value {
            FilterValue::Text(text) => self.texts.push(text),
            FilterValue::Number(number) => self.numbers.push(number),
            FilterValue::Bool(bool) => self.bools.push(bool),
            FilterValue::Attribute(_) | FilterValue::Array(_) | FilterValue::Opaque => {}
        }
    }

    /// The array of the elements that were taken.
    pub(crate) fn into_array(mut self) -> FilterValue<'e> {
        self.texts.sort_unstable();
        self.numbers.sort_unstable();
        self.bools.sort_unstable();
        self.bools.dedup();
        FilterValue::Array(Box::new(self))
    }
}
