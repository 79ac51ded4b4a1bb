//! The table against `template.yaml`: each function is given its variables, and parameters have the
//! table's defaults and bounds. That the functions themselves accept these values is tested in
//! `tests/aws`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use posthaste_settings::{Function, ValueForm, Variable, WhenAbsent};
use serde_json::{Value, json};

use crate::file;
use crate::rows::{rows, variables};

/// The template. Of a tag such as `!Ref Name` the name is left.
pub(crate) fn template() -> Value {
    serde_saphyr::from_str(&fs::read_to_string(file("template.yaml")).unwrap()).unwrap()
}

/// A value of the template as text.
pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The variables that the template gives each program, and what each refers to.
fn given(template: &Value) -> BTreeMap<String, BTreeMap<String, Value>> {
    let resources = template["Resources"].as_object().unwrap().values();
    let functions = resources.filter(|resource| resource["Type"] == "AWS::Serverless::Function");
    functions
        .map(|function| {
            let program = text(&function["Properties"]["Handler"]);
            let everywhere = &template["Globals"]["Function"]["Environment"]["Variables"];
            let own = &function["Properties"]["Environment"]["Variables"];
            let variables = [everywhere, own]
                .into_iter()
                .filter_map(Value::as_object)
                .flatten();
            (
                program,
                variables
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )
        })
        .collect()
}

/// The parameter that a variable refers to: alone, or with a number that takes its place under a
/// condition. Of what the stack makes or adopts, it is none.
fn parameter_in<'a>(value: &Value, template: &'a Value) -> Option<&'a str> {
    let alone = std::slice::from_ref(value);
    let values = value.as_array().map_or(alone, Vec::as_slice);
    let mut names = values.iter().filter_map(Value::as_str);
    if (names.clone()).any(|name| template["Resources"].get(name).is_some()) {
        return None;
    }
    let parameters = template["Parameters"].as_object().unwrap();
    let (name, _) = names.find_map(|name| parameters.get_key_value(name))?;
    Some(name)
}

/// The members that the template's parameter of a variable must have.
fn expected(variable: &Variable) -> Value {
    let mut members = json!({});
    match variable.when_absent {
        WhenAbsent::Default(value) => members["Default"] = value.into(),
        WhenAbsent::Nothing => members["Default"] = "".into(),
        WhenAbsent::Refuse => {}
    }
    match variable.form {
        // A number that may be left out is a text with a pattern.
        ValueForm::Number(..) if variable.when_absent == WhenAbsent::Nothing => {
            members["Type"] = "String".into();
        }
        ValueForm::Number(least, greatest) => {
            members["Type"] = "Number".into();
            members["MinValue"] = least.to_string().into();
            members["MaxValue"] = greatest.to_string().into();
        }
        ValueForm::Choice(choices) => {
            let names: BTreeSet<_> = choices.iter().map(|choice| choice.name).collect();
            members["AllowedValues"] = json!(names);
        }
        ValueForm::Secret(_) => members["NoEcho"] = "true".into(),
        _ => members["Type"] = "String".into(),
    }
    members
}

#[test]
fn parameters_have_the_defaults_and_bounds_of_the_table() {
    let parameters = &template()["Parameters"];
    let mut seen = BTreeSet::new();
    for variable in variables() {
        let Some(name) = variable.parameter else {
            continue;
        };
        for (member, expected) in expected(&variable).as_object().unwrap() {
            let found = match &parameters[name][member] {
                Value::Array(values) => json!(values.iter().map(text).collect::<BTreeSet<_>>()),
                Value::Null => Value::Null,
                value => text(value).into(),
            };
            assert_eq!(
                &found, expected,
                "{name}: {member} of template.yaml and of the table"
            );
        }
        assert!(seen.insert(name), "{name} sets two variables");
    }
}

#[test]
fn each_function_is_given_its_variables_and_no_others() {
    let template = template();
    let given = given(&template);
    assert_eq!(given.len(), Function::ALL.len());
    for function in Function::ALL {
        let own = variables().filter(|variable| variable.readers.contains(&function));
        let own: BTreeMap<_, _> = own
            .map(|variable| (variable.name.to_owned(), variable.parameter))
            .collect();
        let given = given[function.as_str()]
            .iter()
            .map(|(name, refers)| (name.clone(), parameter_in(refers, &template)));
        assert_eq!(
            given.collect::<BTreeMap<_, _>>(),
            own,
            "{function}: template.yaml, and the table"
        );
    }
}

#[test]
fn every_default_and_choice_is_taken_by_its_setting() {
    for row in rows() {
        let option = row
            .option
            .map(|option| (option.name, option.form, option.default));
        let variable = row.variable.map(|variable| {
            let default = if let WhenAbsent::Default(text) = variable.when_absent {
                Some(text)
            } else {
                None
            };
            (variable.name, variable.form, default)
        });
        for (name, form, default) in [option, variable].into_iter().flatten() {
            let choices = if let ValueForm::Choice(choices) = form {
                choices
            } else {
                &[]
            };
            for text in choices.iter().map(|choice| choice.name).chain(default) {
                assert!((row.takes)(text), "{name}={text}");
                assert!(
                    choices.is_empty() || choices.iter().any(|choice| choice.name == text),
                    "{name}={text}"
                );
            }
        }
    }
}
