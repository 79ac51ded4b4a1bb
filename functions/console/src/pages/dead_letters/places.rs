//! The place of a dead letter in its object, by the id of its event.

use maud::{Markup, html};
use posthaste_core::delivery_log::log_text;
use posthaste_core::stored::dead_letter::ShownLetter;

use crate::address::PageAddress;
use crate::display::cell_text;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;

/// The columns.
const COLUMNS: [TableColumn; 5] = [
    Text("Event"),
    Text("Type"),
    Text("Reason"),
    Number("Attempts"),
    Number("Status"),
];

/// Most letters of one id that are listed.
const LETTERS_MAX: usize = 100;

/// The page of a dead letter.
pub(super) fn record_address(object: &str, index: usize) -> PageAddress {
    PageAddress::new(&["dead-letters", "record"])
        .query("object", Some(object))
        .query("index", Some(index))
}

/// The letters of an object that a page may be about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LetterMatch {
    At(usize),
    /// An id is unique only within its source.
    Several(Vec<usize>),
    Nowhere,
}

impl LetterMatch {
    /// The letter at this index, or else of this id, or else the first one.
    pub(super) fn find(index: Option<usize>, id: Option<&str>, letters: &[ShownLetter]) -> Self {
        match (index, id) {
            (None, Some(id)) => Self::with_id(id, letters),
            (index, _) => Self::from_index(
                letters
                    .get(index.unwrap_or_default())
                    .and(index.or(Some(0))),
            ),
        }
    }

    /// The letters of an id as the delivery log keeps it, which is its beginning.
    fn with_id(id: &str, letters: &[ShownLetter]) -> Self {
        let id = log_text(id);
        let found = letters
            .iter()
            .enumerate()
            .filter(|(_, letter)| letter.id.as_deref().is_some_and(|it| log_text(it) == id));
        match found.map(|(index, _)| index).collect::<Vec<_>>() {
            found if found.len() > 1 => Self::Several(found),
            found => Self::from_index(found.first().copied()),
        }
    }

    fn from_index(index: Option<usize>) -> Self {
        index.map_or(Self::Nowhere, Self::At)
    }
}

/// The letters of one id, to choose from.
pub(super) fn match_table(object: &str, letters: &[ShownLetter], places: &[usize]) -> Markup {
    let found = places
        .iter()
        .filter_map(|index| Some((*index, letters.get(*index)?)));
    let rows = found
        .take(LETTERS_MAX)
        .map(|(index, letter)| match_row(object, index, letter));
    html! {
        p { "There are " (places.len()) " dead letters of this id. Choose one." }
        (data_table("Events of this id", &COLUMNS, rows))
        @if places.len() > LETTERS_MAX { p.hint { "The first " (LETTERS_MAX) " are shown." } }
    }
}

fn match_row(object: &str, index: usize, letter: &ShownLetter) -> [Markup; COLUMNS.len()] {
    [
        html! { a href=(record_address(object, index)) { "Number " (index + 1) } },
        cell_text(letter.event_type.as_deref()).unwrap_or_default(),
        cell_text(letter.reason.as_deref()).unwrap_or_default(),
        html! { @if let Some(attempts) = letter.attempts { (attempts) } },
        html! { @if let Some(status) = letter.status { (status) } },
    ]
}
