//! The rows of the table, without the types of their values.

use posthaste_settings::table::{self, SettingVisitor};
use posthaste_settings::{ServeOption, Setting, Variable};

/// A row.
pub(crate) struct Row {
    pub(crate) option: Option<ServeOption>,
    pub(crate) variable: Option<Variable>,
    /// Tries the setting's parser on a text.
    pub(crate) takes: Box<dyn Fn(&str) -> bool>,
}

#[derive(Default)]
struct Rows(Vec<Row>);

impl SettingVisitor for Rows {
    fn visit<T: 'static>(&mut self, setting: &'static Setting<T>) {
        let takes = Box::new(|text: &str| (setting.parse)(text).is_ok());
        self.0.push(Row {
            option: setting.option,
            variable: setting.variable,
            takes,
        });
    }
}

/// All rows, in their order.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Rows::default();
    table::visit(&mut rows);
    rows.0
}

/// The variables of Lambda programs, in their order.
pub(crate) fn variables() -> impl Iterator<Item = Variable> {
    rows().into_iter().filter_map(|row| row.variable)
}
