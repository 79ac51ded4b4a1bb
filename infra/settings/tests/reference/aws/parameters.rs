//! The parameters of the template, and their groups in AWS's console, from the table.

use posthaste_settings::parameters::GROUPS;
use posthaste_settings::{Parameter, ParameterValue, ValueForm, Variable, WhenAbsent};

use super::yaml::{indented_line, quoted, scalar, sentence, wrapped};
use crate::rows::variables;

/// The heading of all that are not to be read first.
const OTHERS: &str = "Advanced, rarely";

/// The members of `AWS::CloudFormation::Interface`.
pub(crate) fn console_groups() -> String {
    let (first, others) = GROUPS.split_first().expect("a group");
    let mut lines = vec![
        "  AWS::CloudFormation::Interface:".to_owned(),
        "    ParameterLabels:".to_owned(),
    ];
    for parameter in first.parameters {
        let label = parameter.label.expect("a label");
        let name = parameter.name;
        lines.push(format!("      {name}: {{ default: \"{name}: {label}\" }}"));
    }
    lines.push("    ParameterGroups:".to_owned());
    lines.extend(console_group(first.subject, first.parameters.iter()));
    let others = others.iter().flat_map(|group| group.parameters);
    lines.extend(console_group(OTHERS, others));
    lines.join("\n")
}

fn console_group<'a>(label: &str, parameters: impl Iterator<Item = &'a Parameter>) -> Vec<String> {
    let mut lines = vec![
        format!("      - Label: {{ default: {} }}", scalar(label)),
        "        Parameters:".to_owned(),
    ];
    for parameter in parameters {
        lines.push(format!("          - {}", parameter.name));
    }
    lines
}

/// The section `Parameters`.
pub(crate) fn parameters() -> String {
    let mut lines = vec!["Parameters:".to_owned()];
    for group in GROUPS {
        lines.push(format!("  # ---- {}", group.subject));
        for parameter in group.parameters {
            lines.extend(parameter_lines(parameter));
        }
        lines.push(String::new());
    }
    lines.join("\n")
}

/// The text of a parameter's default; `None` if it must be given.
pub(crate) fn default_of(parameter: &Parameter) -> Option<String> {
    match parameter.value {
        ParameterValue::OfSetting => match variable_of(parameter)?.when_absent {
            WhenAbsent::Default(text) => Some(text.to_owned()),
            WhenAbsent::Nothing => Some(String::new()),
            WhenAbsent::Refuse => None,
        },
        ParameterValue::Text(default) | ParameterValue::ChoiceValue { default, .. } => {
            Some(default.to_owned())
        }
        ParameterValue::List => Some(String::new()),
        ParameterValue::Number { default, .. } | ParameterValue::NumberChoice { default, .. } => {
            Some(default.to_string())
        }
    }
}

/// The variable that a parameter gives.
pub(crate) fn variable_of(parameter: &Parameter) -> Option<Variable> {
    variables().find(|variable| variable.parameter == Some(parameter.name))
}

fn parameter_lines(parameter: &Parameter) -> Vec<String> {
    let mut members = match parameter.value {
        ParameterValue::OfSetting => {
            let variable = variable_of(parameter);
            let name = parameter.name;
            setting_members(&variable.unwrap_or_else(|| panic!("no setting has {name}")))
        }
        ParameterValue::Text(default) => text_members("String", Some(default)),
        ParameterValue::List => text_members("CommaDelimitedList", Some("")),
        ParameterValue::Number {
            default,
            least,
            greatest,
        } => number_members(&default.to_string(), least, greatest),
        ParameterValue::NumberChoice { default, choices } => {
            let choices: Vec<_> = choices.iter().map(i64::to_string).collect();
            let mut members = vec!["Type: Number".to_owned(), format!("Default: {default}")];
            members.extend(allowed_values(&choices));
            members
        }
        ParameterValue::ChoiceValue { default, choices } => choice_members(Some(default), choices),
    };
    if let Some(characters) = parameter.length_max {
        members.push(format!("MaxLength: {characters}"));
    }
    let mut lines = vec![format!("  {}:", parameter.name)];
    lines.extend(members.iter().map(|member| indented_line(member, 4)));
    if let Some(pattern) = parameter.pattern {
        lines.push(format!(
            "    AllowedPattern: {}",
            quoted(pattern.expression)
        ));
        lines.extend(sentence("ConstraintDescription", pattern.expected, 4));
    }
    lines.extend(sentence("Description", parameter.description, 4));
    lines
}

/// The members that the row of a setting says.
fn setting_members(variable: &Variable) -> Vec<String> {
    let default = match variable.when_absent {
        WhenAbsent::Default(text) => Some(text),
        WhenAbsent::Nothing => Some(""),
        WhenAbsent::Refuse => None,
    };
    match variable.form {
        // A number that may be left out is a text with a pattern.
        ValueForm::Number(least, greatest) if default != Some("") => {
            number_members(default.unwrap_or_default(), least, Some(greatest))
        }
        ValueForm::Choice(choices) => {
            let choices: Vec<_> = choices.iter().map(|choice| choice.name).collect();
            choice_members(default, &choices)
        }
        // Its headers may have a key of the collector.
        ValueForm::Secret(_) => {
            let mut members = text_members("String", default);
            members.push("NoEcho: true".to_owned());
            members
        }
        _ => text_members("String", default),
    }
}

fn text_members(kind: &str, default: Option<&str>) -> Vec<String> {
    let mut members = vec![format!("Type: {kind}")];
    members.extend(default.map(|default| format!("Default: {}", scalar(default))));
    members
}

fn number_members(default: &str, least: i64, greatest: Option<i64>) -> Vec<String> {
    let mut members = vec![
        "Type: Number".to_owned(),
        format!("Default: {default}"),
        format!("MinValue: {least}"),
    ];
    members.extend(greatest.map(|greatest| format!("MaxValue: {greatest}")));
    members
}

fn choice_members(default: Option<&str>, choices: &[&str]) -> Vec<String> {
    let mut members = text_members("String", default);
    let choices: Vec<_> = choices.iter().map(|choice| scalar(choice)).collect();
    members.extend(allowed_values(&choices));
    members
}

/// The values that may be chosen, on one line if they fit.
fn allowed_values(choices: &[String]) -> Vec<String> {
    let values = choices.join(", ");
    if values.len() < 95 {
        return vec![format!("AllowedValues: [{values}]")];
    }
    let mut lines = vec!["AllowedValues: [".to_owned()];
    lines.extend(
        wrapped(&values, 105)
            .iter()
            .map(|line| indented_line(line, 2)),
    );
    lines.push("]".to_owned());
    lines
}

#[test]
fn ten_parameters_are_to_be_read_first_and_have_labels() {
    let (first, others) = GROUPS.split_first().expect("a group");
    let labelled = first.parameters.iter().filter(|it| it.label.is_some());
    assert_eq!(labelled.count(), 10);
    assert_eq!(first.parameters.len(), 10);
    let others = others.iter().flat_map(|group| group.parameters);
    assert_eq!(others.filter(|it| it.label.is_some()).count(), 0);
}
