//! All mistakes of YAML files, each with its place and its member.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use posthaste_core::api::{ApplyFile, WrittenValue};
use posthaste_core::model::MISTAKES_MAX;
use posthaste_yaml::{SettingsCheck, TextMistake, TextPlace, name_mistake, value_mistake};
use serde::de::DeserializeOwned;

use crate::error::CommandFailure;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMistake {
    pub path: PathBuf,
    pub mistake: TextMistake,
}

/// Error of files with mistakes: all of them, in the order of the files.
#[derive(Debug, PartialEq, Eq)]
pub struct FileMistakes(pub Vec<FileMistake>);

/// Reads the text of a file of topics that has to pass `check`, or finds all mistakes in it.
pub fn read_file(
    path: &Path,
    text: &[u8],
    check: SettingsCheck<'_, ApplyFile>,
) -> Result<ApplyFile, FileMistakes> {
    posthaste_yaml::read_file(text, check).map_err(|found| FileMistakes::for_file(path, found))
}

/// Reads the text of a file of topics that `complete` makes whole, as [`read`] does, and returns
/// what was written too.
pub fn read_part(
    path: &Path,
    text: &[u8],
    complete: &dyn Fn(&WrittenValue) -> WrittenValue,
    check: SettingsCheck<'_, ApplyFile>,
) -> Result<(ApplyFile, WrittenValue), FileMistakes> {
    posthaste_yaml::read_part(text, complete, check)
        .map_err(|found| FileMistakes::for_file(path, found))
}

/// Reads the text of a file of settings, or finds all mistakes in it but those against rules.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, FileMistakes> {
    posthaste_yaml::read_checked(text, &|_| Ok(()))
        .map_err(|found| FileMistakes::for_file(path, found))
}

/// Error of a file whose `member`, if it is one alone, breaks a rule. The rule names it.
pub fn rule_violation(
    path: &Path,
    text: &[u8],
    member: Option<&str>,
    rule: &dyn Error,
) -> FileMistakes {
    let place =
        member.and_then(|member| value_mistake(text, member.to_owned(), String::new()).place);
    let mistake = TextMistake {
        place,
        member: String::new(),
        text: rule.to_string(),
    };
    FileMistakes::for_file(path, vec![mistake])
}

/// A file, and a place in it: `topics.yaml:3:7`.
fn with_place(path: &Path, place: Option<TextPlace>) -> String {
    let place = place
        .map(|TextPlace { line, column }| format!(":{line}:{column}"))
        .unwrap_or_default();
    format!("{}{place}", path.display())
}

impl FileMistakes {
    fn for_file(path: &Path, found: Vec<TextMistake>) -> Self {
        let mistakes = found.into_iter().map(|mistake| FileMistake {
            path: path.to_owned(),
            mistake,
        });
        Self(mistakes.collect())
    }
}

impl FileMistake {
    /// The mistake of a member, which is there.
    pub fn of_name(path: &Path, text: &[u8], member: String, fault: String) -> Self {
        Self {
            path: path.to_owned(),
            mistake: name_mistake(text, member, fault),
        }
    }
}

impl fmt::Display for FileMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextMistake {
            place,
            member,
            text,
        } = &self.mistake;
        write!(f, "{}: ", with_place(&self.path, *place))?;
        if !member.is_empty() {
            write!(f, "{member}: ")?;
        }
        f.write_str(text)
    }
}

impl fmt::Display for FileMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(f, "{only}"),
            found => {
                let which = if found.len() == MISTAKES_MAX {
                    "the first "
                } else {
                    ""
                };
                write!(f, "{which}{} mistakes", found.len())?;
                found
                    .iter()
                    .try_for_each(|mistake| write!(f, "\n  {mistake}"))
            }
        }
    }
}

impl Error for FileMistakes {}

impl CommandFailure for FileMistakes {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
}
