//! The members of a JSON request. An unexpected member is an error: the double must not seem to
//! accept a member that it does not know.

use serde_json::{Map, Value};

use super::error::Error;

/// Members that were not taken yet.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(body)
            .map(Self)
            .map_err(|error| Error::malformed(error.to_string()))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Error> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(Error::malformed(format!("{name} is no string: {other}"))),
        }
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<i64>, Error> {
        let Some(value) = self.0.remove(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let number = value
            .as_i64()
            .ok_or_else(|| Error::malformed(format!("{name} is no integer: {value}")));
        number.map(Some)
    }

    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>, Error> {
        let value = self.0.remove(name).unwrap_or_else(|| Value::Array(vec![]));
        serde_json::from_value(value)
            .map_err(|_| Error::malformed(format!("{name} is no list of strings")))
    }

    /// The members of each entry of a list of objects.
    pub(super) fn entries(&mut self, name: &str) -> Result<Vec<Self>, Error> {
        let value = self.0.remove(name).unwrap_or_else(|| Value::Array(vec![]));
        let entries: Result<Vec<Map<String, Value>>, _> = serde_json::from_value(value);
        let entries =
            entries.map_err(|_| Error::malformed(format!("{name} is no list of objects")))?;
        Ok(entries.into_iter().map(Self).collect())
    }

    /// Refuses members that were not taken.
    pub(super) fn done(self) -> Result<(), Error> {
        match self.0.keys().next() {
            Some(name) => Err(Error::malformed(format!(
                "the double does not know the member {name}"
            ))),
            None => Ok(()),
        }
    }
}
