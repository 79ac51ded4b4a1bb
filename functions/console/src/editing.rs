//! Settings that are edited as YAML: the form, its mistakes, and the difference that saving would
//! make.

mod draft;
mod form;
mod report;

pub(crate) use self::draft::{Draft, Step, mistake_in};
pub(crate) use self::form::{Editor, text_area};
pub(crate) use self::report::{mistakes, unsaved};
