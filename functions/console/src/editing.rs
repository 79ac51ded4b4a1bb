//! Settings that are edited as YAML: their draft, its mistakes, and the difference that saving would
//! make.

mod draft;
mod report;

pub(crate) use self::draft::{EditStep, SettingsDraft, TEXT_BYTES_MAX, unplaced_mistake};
pub(crate) use self::report::{change_table, changed_meanwhile_note, mistake_list, uncertain_note};
