//! Reads one YAML file, up to its first error.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_saphyr::{DefaultMessageFormatter, Localizer, Location};

use super::locate::{Place, Places};
use crate::error::Failure;

/// Error of a YAML file: it is not the expected YAML, or its content breaks a rule.
#[derive(Debug, thiserror::Error)]
#[error("{}", with_place(path, *place))]
pub struct FileError {
    pub(super) path: PathBuf,
    /// Place in the file, if the member at fault is in it.
    pub(super) place: Option<Place>,
    pub(super) source: Box<dyn Error + Send + Sync>,
}

/// Error of a YAML text, without the place, which [`FileError`] shows in the form that editors understand.
#[derive(Debug)]
pub struct YamlError(serde_saphyr::Error);

/// A formatter that leaves places out.
struct Placeless;

/// Reads the text of a file.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, FileError> {
    // No snippets in errors: the line at fault may hold a secret.
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_slice_with_options(text, options).map_err(|error| {
        let place = error.location().map(|at| Place { line: at.line(), column: at.column() });
        FileError { path: path.to_owned(), place, source: Box::new(YamlError(error)) }
    })
}

/// Error of a file whose `member`, as a path such as `topics.a.retry`, breaks a rule.
pub fn refused(
    path: &Path,
    text: &[u8],
    member: Option<&str>,
    rule: impl Error + Send + Sync + 'static,
) -> FileError {
    let place = member.and_then(|member| Some(Places::of(text)?.of_value(member)));
    FileError { path: path.to_owned(), place, source: Box::new(rule) }
}

/// A file, and a place in it: `topics.yaml:3:7`.
pub(super) fn with_place(path: &Path, place: Option<Place>) -> String {
    let place = place.map(|Place { line, column }| format!(":{line}:{column}")).unwrap_or_default();
    format!("{}{place}", path.display())
}

impl Failure for FileError {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
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
