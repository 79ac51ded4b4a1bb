//! YAML files: read with an error that says file, line and column.

mod locate;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_saphyr::{DefaultMessageFormatter, Localizer, Location};

use crate::error::Failure;
use locate::locate;

pub use locate::Place;

/// Error of a YAML file; `R` is what its rules say.
#[derive(Debug, thiserror::Error)]
pub enum FileError<R> {
    /// The text is not the expected YAML: its form, an unknown member, a wrong type.
    #[error("{}", At { path, place })]
    Yaml {
        path: PathBuf,
        /// Place in the file.
        place: Option<Place>,
        /// The error there.
        #[source]
        source: Box<YamlError>,
    },
    /// The content breaks a rule.
    #[error("{}", At { path, place })]
    Refused {
        path: PathBuf,
        /// Place of the member at fault, if it is in the file.
        place: Option<Place>,
        /// The rule.
        #[source]
        source: R,
    },
}

/// Error of a YAML text, without the place, which [`FileError`] shows in the form that editors understand.
#[derive(Debug)]
pub struct YamlError(serde_saphyr::Error);

/// A formatter that leaves places out.
struct Placeless;

/// A file, and a place in it: `topics.yaml:3:7`.
struct At<'a> {
    path: &'a Path,
    place: &'a Option<Place>,
}

/// Reads the text of a file.
pub fn parse<T: DeserializeOwned, R>(path: &Path, text: &[u8]) -> Result<T, FileError<R>> {
    // No snippets in errors: the line at fault may hold a secret.
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_slice_with_options(text, options).map_err(|error| {
        let place = error.location().map(|at| Place { line: at.line(), column: at.column() });
        FileError::Yaml { path: path.to_owned(), place, source: Box::new(YamlError(error)) }
    })
}

/// Error of a file whose `member`, as a path such as `topics.a.retry`, breaks a rule.
pub fn refused<R>(path: &Path, text: &[u8], member: Option<&str>, source: R) -> FileError<R> {
    let place = member.and_then(|member| locate(text, member));
    FileError::Refused { path: path.to_owned(), place, source }
}

impl<R: Error + Send + Sync + 'static> Failure for FileError<R> {
    fn exit_code(&self) -> u8 {
        3
    }
}

impl Error for YamlError {}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let formatter = DefaultMessageFormatter.with_localizer(&Placeless);
        f.write_str(&self.0.render_with_formatter(&formatter))
    }
}

impl Localizer for Placeless {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.place {
            Some(Place { line, column }) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}
