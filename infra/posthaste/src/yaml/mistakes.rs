//! All mistakes of a YAML file, each with its place and its member.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use posthaste_core::api::{Mistake, Notation, SettingsError, mistakes};
use posthaste_core::model::MISTAKES_MAX;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::file::{FileError, parse, refused, with_place};
use super::locate::{Place, Places};
use crate::error::Failure;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMistake {
    pub path: PathBuf,
    /// The place in the file, if the mistake has one.
    pub place: Option<Place>,
    /// The member at fault; empty for the whole file.
    pub member: String,
    /// The fault and the remedy.
    pub text: String,
}

/// Error of files with mistakes: all of them, in the order of the files.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<FileMistake>);

/// Reads the text of a file that has to pass `check`, or finds all mistakes in it.
pub fn read<T: DeserializeOwned>(
    path: &Path,
    text: &[u8],
    check: impl Fn(&T) -> Result<(), SettingsError>,
) -> Result<T, Mistakes> {
    let first = match parse::<T>(path, text) {
        Ok(value) => match check(&value) {
            Ok(()) => return Ok(value),
            Err(error) => {
                let member = error.member.clone();
                refused(path, text, Some(&member), error)
            }
        },
        Err(error) => error,
    };
    // A file that is no YAML has one mistake.
    let found = all::<T>(path, text, check);
    Err(Mistakes(if found.is_empty() { vec![FileMistake::of(first)] } else { found }))
}

fn all<T: DeserializeOwned>(
    path: &Path,
    text: &[u8],
    check: impl Fn(&T) -> Result<(), SettingsError>,
) -> Vec<FileMistake> {
    let (Ok(written), Some(places)) = (parse::<Value>(path, text), Places::of(text)) else {
        return Vec::new();
    };
    let located = |mistake: Mistake| {
        let Mistake { member, text, is_at_name } = mistake;
        let place = if is_at_name { places.of_name(&member) } else { places.of_value(&member) };
        FileMistake { path: path.to_owned(), place: Some(place), member, text }
    };
    let mut found: Vec<_> = mistakes(&written, Notation::Yaml, check).into_iter().map(located).collect();
    found.sort_by_key(|mistake| mistake.place);
    found
}

impl FileMistake {
    /// The mistake of a member, which is there.
    pub fn of_name(path: &Path, text: &[u8], member: String, fault: String) -> Self {
        let place = Places::of(text).map(|places| places.of_name(&member));
        Self { path: path.to_owned(), place, member, text: fault }
    }

    fn of(error: FileError) -> Self {
        Self { path: error.path, place: error.place, member: String::new(), text: error.source.to_string() }
    }
}

impl fmt::Display for FileMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", with_place(&self.path, self.place))?;
        if !self.member.is_empty() {
            write!(f, "{}: ", self.member)?;
        }
        f.write_str(&self.text)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(f, "{only}"),
            found => {
                let which = if found.len() == MISTAKES_MAX { "the first " } else { "" };
                write!(f, "{which}{} mistakes", found.len())?;
                found.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
            }
        }
    }
}

impl Error for Mistakes {}

impl Failure for Mistakes {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
}
