//! Reads a YAML text as values, and says in our own words why it is none.

use std::borrow::Cow;

use posthaste_core::api::WrittenValue;
use serde::de::DeserializeOwned;
use serde_saphyr::granit_parser::ErrorKind;
use serde_saphyr::localizer::ExternalMessageSource;
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{
    DefaultMessageFormatter, Error, Localizer, Location, Options, budget, from_slice_with_options,
    with_deserializer_from_slice_with_options,
};

use crate::place::TextPlace;
use crate::text_mistake::TextMistake;

/// The mark with which some editors begin a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Levels of lists and objects in each other. A file of topics has ten. A level takes 32 KiB of the
/// stack where nothing is optimized, and a thread has 2 MiB.
pub(crate) const LEVELS_MAX: usize = 32;

/// The fault of a text that uses what only programs make.
const TOO_MUCH: &str =
    "aliases or nesting make this larger than a file of settings may be; write it out";

/// A formatter that leaves places out.
struct PlacelessLocalizer;

/// The text without a byte order mark.
pub(crate) fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Reads a text. A number that JSON does not have is a text of its characters.
///
/// # Errors
/// The mistake that makes it no YAML.
pub(crate) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, TextMistake> {
    from_slice_with_options(text, reader_options()).map_err(|error| {
        let place = error.location().map(|at| TextPlace {
            line: at.line(),
            column: at.column(),
        });
        TextMistake {
            place,
            member: member_at_fault(text, &error),
            text: in_our_words(&error).into_owned(),
        }
    })
}

fn reader_options() -> Options {
    // No snippets in errors: the line at fault may hold a secret.
    serde_saphyr::options! {
        with_snippet: false,
        budget: budget! { max_depth: LEVELS_MAX },
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    }
}

/// The member in which a text ends to be YAML. The way to it is only known to a reader that keeps
/// it, so the text is read again.
fn member_at_fault(text: &[u8], error: &Error) -> String {
    let mut path = String::new();
    let read = with_deserializer_from_slice_with_options(text, reader_options(), |yaml| {
        serde_path_to_error::deserialize::<_, WrittenValue>(yaml).map_err(|error| {
            // A name that is still to be read is an unknown step.
            let known = error.path().to_string();
            known.trim_end_matches(['?', '.']).clone_into(&mut path);
            error.into_inner()
        })
    });
    drop(read);
    match error {
        Error::DuplicateMappingKey { key: Some(key), .. } if path.is_empty() => key.clone(),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("{path}.{key}"),
        _ => path,
    }
}

/// The fault. The texts of the library name functions and types of its own.
fn in_our_words(error: &Error) -> Cow<'static, str> {
    let text = match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => {
            return in_our_words(error);
        }
        Error::DuplicateMappingKey { .. } => "is there twice, remove or rename one",
        Error::Eof { .. } => "the text ends here, in the middle of a value",
        Error::MultipleDocuments { .. } => {
            "this belongs to another document (`---`), expected one; put it into a file of its own"
        }
        Error::InvalidUtf8Input => "the text is not UTF-8",
        Error::UnknownAnchor { .. } => "no anchor of this name is above (`&name`)",
        Error::MergeValueNotMapOrSeqOfMaps { .. } | Error::MergeKeyNotAllowed { .. } => {
            "`<<` takes an object, or a list of them"
        }
        Error::InvalidBinaryBase64 { .. }
        | Error::BinaryNotUtf8 { .. }
        | Error::TaggedScalarCannotDeserializeIntoString { .. }
        | Error::UnsupportedTag { .. } => {
            "tags (`!name`) are not read here; write the value without"
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => "the alias names what it stands in",
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => TOO_MUCH,
        Error::NullIntoString { .. } => "expected a name before the colon, found nothing",
        Error::Unexpected { .. } => "expected a name or a value, found something else",
        Error::UnexpectedSequenceEnd { .. }
        | Error::UnexpectedMappingEnd { .. }
        | Error::ContainerEndMismatch { .. }
        | Error::UnexpectedContainerEndWhileSkippingNode { .. }
        | Error::UnexpectedContainerEndWhileReadingKeyNode { .. } => {
            "a bracket is closed here that was not opened"
        }
        Error::FoldedBlockScalarMustIndentContent { .. } | Error::IndentationError { .. } => {
            "the indentation is wrong"
        }
        Error::QuotingRequired { .. } => "this text needs quotes",
        Error::ExternalMessage { source, .. } if is_too_deep(source) => TOO_MUCH,
        other => {
            let formatter = DefaultMessageFormatter.with_localizer(&PlacelessLocalizer);
            return format!("is no YAML: {}", other.render_with_formatter(&formatter)).into();
        }
    };
    text.into()
}

/// Whether the scanner ran out of levels before it counted [`LEVELS_MAX`].
fn is_too_deep(source: &ExternalMessageSource) -> bool {
    let ExternalMessageSource::Parser(error) = source else {
        return false;
    };
    matches!(error.kind(), ErrorKind::RecursionLimitExceeded)
}

impl Localizer for PlacelessLocalizer {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}
