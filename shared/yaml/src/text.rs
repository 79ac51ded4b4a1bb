//! Reads a YAML text, up to its first error.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{DefaultMessageFormatter, Localizer, Location};

use crate::place::Place;

/// Error of a YAML text: it is not the expected YAML, or its content breaks a rule.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct TextError {
    /// The place, if the member at fault is in the text.
    pub place: Option<Place>,
    /// The fault.
    pub source: Box<dyn Error + Send + Sync>,
}

/// Error of a YAML text without its place, which [`TextError`] has.
#[derive(Debug)]
pub struct YamlError(serde_saphyr::Error);

/// A formatter that leaves places out.
struct Placeless;

/// Reads a text.
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, TextError> {
    parse_with(text, NonFiniteFloatPolicy::Reject)
}

/// Reads a text. `policy` says what becomes of a number that JSON does not have, where any value
/// may be.
pub(crate) fn parse_with<T: DeserializeOwned>(
    text: &[u8],
    policy: NonFiniteFloatPolicy,
) -> Result<T, TextError> {
    // No snippets in errors: the line at fault may hold a secret.
    let options = serde_saphyr::options! { with_snippet: false, non_finite_float_policy: policy };
    serde_saphyr::from_slice_with_options(text, options).map_err(|error| {
        let place = error.location().map(|at| Place {
            line: at.line(),
            column: at.column(),
        });
        TextError {
            place,
            source: Box::new(YamlError(error)),
        }
    })
}

impl Error for YamlError {}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The library's text names an option of its own.
        if let serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } = &self.0 {
            return write!(f, "`{key}` is there twice, remove or rename one");
        }
        let formatter = DefaultMessageFormatter.with_localizer(&Placeless);
        f.write_str(&self.0.render_with_formatter(&formatter))
    }
}

impl Localizer for Placeless {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}
