//! The source of a replay: dead letters, or the delivery log.

use serde_json::{Map, Value};

use crate::extract::FormFields;

/// The source whose events may also have been delivered, as the API writes it.
pub(super) const LOG: &str = "log";

/// The source of a replay, with what only one from the delivery log has.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplaySourceFields {
    source: Option<String>,
    result: Option<String>,
    status: Option<String>,
}

impl ReplaySourceFields {
    pub(super) fn from_form(fields: &FormFields) -> Self {
        Self {
            source: fields.get_filled("source"),
            result: fields.get_filled("result"),
            status: fields.get_filled("status"),
        }
    }

    /// Whether the events are those of the delivery log.
    pub(super) fn is_log(&self) -> bool {
        self.source.as_deref() == Some(LOG)
    }

    /// Writes the source into the body of a request. The API refuses what it does not know.
    pub(super) fn write_to(&self, body: &mut Map<String, Value>) {
        for (name, value) in self.hidden_fields() {
            if let Some(value) = value {
                body.insert(name.to_owned(), value.into());
            }
        }
    }

    /// The same as hidden fields. Dead letters have neither a result nor a status to choose by.
    pub(super) fn hidden_fields(&self) -> [(&'static str, Option<&str>); 3] {
        let of_log = self.is_log();
        [
            ("source", self.source.as_deref()),
            ("result", self.result.as_deref().filter(|_| of_log)),
            ("status", self.status.as_deref().filter(|_| of_log)),
        ]
    }
}
