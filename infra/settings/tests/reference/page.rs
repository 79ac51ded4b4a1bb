//! The reference page, made of the table and of the template's parameters.

use std::fmt::Write as _;

use posthaste_settings::parameters::GROUPS;
use posthaste_settings::{Function, Parameter, ParameterValue, ServeOption, ValueForm, WhenAbsent};

use crate::rows::{Row, rows};

const OPENING: &str = "\
# Settings

After this page you can find every option of `serve`, every variable and every parameter on AWS, with \
its default.

An option wins over its variable. A variable that is empty counts as not set. Most installations set \
few of them:
[running serve](../operating/serve.md#run-it-as-a-service) and \
[AWS](../operating/aws.md#change-a-parameter) name
these. Topics and subscriptions have [a page of their own](subscription.md), and so have the keys of
[back pressure](pressure-settings.md) and of [failing endpoints](link-settings.md).

A test makes this page from `table.rs` and `parameters.rs` in `infra/settings/src`. To change it, \
change these, and run
`POSTHASTE_RENEW=1 cargo test -p posthaste-settings`.

## `posthaste serve`

Every command also takes `--data-dir` (`POSTHASTE_DATA_DIR`, default `./posthaste-data`): the \
folder that holds
everything. It is for its owner alone (folders 0700, files 0600, under any umask). What was open to others is
narrowed at the start; where modes cannot be changed, the log says so. One process at a time can use it.

";

const ON_AWS: &str = "\
## On AWS: read by the functions

`sam deploy --parameter-overrides NAME=VALUE` sets a parameter of `template.yaml`; later \
deployments keep it. The
template gives each function the variables that it reads.

";

const IN_THE_TEMPLATE: &str = "\
## On AWS: used by the template itself

These parameters set up queues, buckets, functions and alarms. No function reads them.

";

/// The page.
pub(crate) fn page() -> String {
    let rows = rows();
    let mut page = OPENING.to_owned();
    let mut heading = None;
    for (option, row) in rows.iter().filter_map(|row| Some((row.option?, row))) {
        if option.heading != heading {
            heading = option.heading;
            let _ = write!(page, "\n### {}\n\n", heading.unwrap_or("Options"));
        }
        serve_option(&mut page, &option, row);
    }
    let _ = write!(page, "\n{ON_AWS}");
    paragraph(&mut page, &read_first());
    page.push('\n');
    for row in &rows {
        variable(&mut page, row);
    }
    let _ = write!(page, "\n{IN_THE_TEMPLATE}");
    for parameter in parameters() {
        let value = parameter.value;
        if !matches!(value, ParameterValue::OfSetting) {
            let name = format!("`{}`", parameter.name);
            entry(&mut page, &name, &values(value), parameter.description);
        }
    }
    page
}

/// Every parameter of the template.
fn parameters() -> impl Iterator<Item = &'static Parameter> {
    GROUPS.iter().flat_map(|group| group.parameters)
}

fn read_first() -> String {
    let names = GROUPS[0].parameters.iter();
    let names: Vec<_> = names.map(|it| format!("`{}`", it.name)).collect();
    let (last, others) = names.split_last().unwrap();
    format!(
        "Ten parameters are to be read first: {} and {last}. AWS's console shows all others under \
         \"Advanced, rarely\".",
        others.join(", ")
    )
}

fn serve_option(page: &mut String, option: &ServeOption, row: &Row) {
    let ServeOption {
        name,
        variable,
        value,
        help,
        more,
        ..
    } = option;
    // Help names a default that depends on something else in brackets.
    let (help, computed) = match help.split_once(" [default: ") {
        Some((before, after)) => {
            let (default, after) = after.split_once(']').unwrap_or((after, ""));
            (format!("{before}{after}"), Some(default))
        }
        None => ((*help).to_owned(), None),
    };
    let default = option.default.map(|default| format!("default `{default}`"));
    let default = default.or(computed.map(|default| format!("default: {default}")));
    let form = match option.form {
        ValueForm::Choice(choices) => {
            let choice = |it: &posthaste_settings::ChoiceValue| format!("`{}`", it.name);
            Some(choices.iter().map(choice).collect::<Vec<_>>().join(", "))
        }
        _ => None,
    };
    let on_aws = row
        .variable
        .and_then(|it| it.parameter)
        .map(|parameter| format!("on AWS `{parameter}`"));
    let facts: Vec<_> = [Some(format!("`{variable}`")), default, form, on_aws]
        .into_iter()
        .flatten()
        .collect();
    let more = if more.is_empty() {
        String::new()
    } else {
        format!(" {more}")
    };
    entry(
        page,
        &format!("`--{name} {value}`"),
        &facts.join("; "),
        &format!("{help}{more}"),
    );
}

fn variable(page: &mut String, row: &Row) {
    let Some(variable) = &row.variable else {
        return;
    };
    let readers = if variable.readers.len() == Function::ALL.len() {
        "all functions".to_owned()
    } else {
        variable
            .readers
            .iter()
            .map(Function::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let form = match variable.form {
        ValueForm::Number(least, greatest) => format!("{least} to {greatest}"),
        form => form.expected_text(),
    };
    let default = match variable.when_absent {
        WhenAbsent::Default(default) => format!("; default `{default}`"),
        WhenAbsent::Nothing => "; may be empty".to_owned(),
        WhenAbsent::Refuse => "; needed".to_owned(),
    };
    if let Some(name) = variable.parameter {
        let facts = format!("`{}`; {form}{default}; read by {readers}", variable.name);
        let parameter = parameters().find(|parameter| parameter.name == name);
        let description = parameter.unwrap().description;
        entry(page, &format!("`{name}`"), &facts, description);
    } else {
        let facts = format!("{form}{default}; read by {readers}");
        entry(
            page,
            &format!("`{}`", variable.name),
            &facts,
            "Set by the template.",
        );
    }
}

/// Bounds and default of a parameter that no function reads.
fn values(value: ParameterValue) -> String {
    match value {
        ParameterValue::Number {
            default,
            least,
            greatest: Some(greatest),
        } => format!("{least} to {greatest}; default `{default}`"),
        ParameterValue::Number { default, least, .. } => {
            format!("{least} or more; default `{default}`")
        }
        ParameterValue::NumberChoice { default, choices } => {
            format!("{}; default `{default}`", choices_in_words(choices))
        }
        ParameterValue::ChoiceValue { default, choices } => {
            format!("{}; default `{default}`", choices_in_words(choices))
        }
        ParameterValue::Text("") | ParameterValue::List => "a text; may be empty".to_owned(),
        ParameterValue::Text(default) => format!("a text; default `{default}`"),
        ParameterValue::OfSetting => String::new(),
    }
}

fn choices_in_words<T: std::fmt::Display>(choices: &[T]) -> String {
    let choices: Vec<_> = choices.iter().map(|it| format!("`{it}`")).collect();
    choices.join(", ")
}

/// A setting: its name, the facts, and the meaning.
fn entry(page: &mut String, name: &str, facts: &str, meaning: &str) {
    paragraph(page, &format!("- **{name}** ({facts}): {meaning}"));
}

/// A paragraph or an item of a list, in lines of at most 118 columns.
fn paragraph(page: &mut String, text: &str) {
    let (mut line, mut lines) = (String::new(), String::new());
    let indent = if text.starts_with("- ") { "  " } else { "" };
    for word in text.split_whitespace() {
        if line.chars().count() + word.chars().count() > 116 {
            let _ = writeln!(lines, "{line}");
            line = indent.to_owned() + word;
        } else {
            let gap = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{gap}{word}");
        }
    }
    let _ = writeln!(page, "{lines}{line}");
}
