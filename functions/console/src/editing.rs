//! Settings that are edited as YAML: the form, its mistakes, and the difference that saving would
//! make.

mod draft;
mod form;
mod report;

pub(crate) use self::draft::{EditStep, SettingsDraft, unplaced_mistake};
pub(crate) use self::form::{DraftEditor, text_area};
pub(crate) use self::report::{mistake_list, unsaved_note};
