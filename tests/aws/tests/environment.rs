//! template.yaml against the code: each function is given the variables that it reads, all of them
//! and no others, and the function accepts every value that the template lets an operator choose.

#![expect(
    clippy::unwrap_used,
    reason = "a template that cannot be read has failed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use posthaste_lambda::environment::{
    DeadLetterEnvironment, DeliverEnvironment, EnvironmentError, FunctionEnvironment,
    ManageEnvironment, MonitorEnvironment, PublishEnvironment, RecordEnvironment, WakeEnvironment,
};
use posthaste_settings::table::{self, SettingVisitor};
use posthaste_settings::{Setting, ValueForm, WhenAbsent};
use serde_json::Value;

/// A function in the code.
struct Function {
    name: &'static str,
    variables: BTreeSet<String>,
    read: fn(&Variables) -> Result<(), EnvironmentError>,
}

/// The variables that hold a number and have a default, as the table of settings has them.
#[derive(Debug, Default)]
struct Numbers(BTreeSet<String>);

impl SettingVisitor for Numbers {
    fn visit<T>(&mut self, setting: &'static Setting<T>) {
        let numbers = setting.variable.iter().filter(|variable| {
            matches!(
                (variable.form, variable.when_absent),
                (ValueForm::Number(..), WhenAbsent::Default(_))
            )
        });
        self.0
            .extend(numbers.map(|variable| variable.name.to_owned()));
    }
}

type Variables = BTreeMap<String, String>;

fn function<E: FunctionEnvironment>(name: &'static str) -> Function {
    let read = |variables: &Variables| E::read(&|name| variables.get(name).cloned()).map(|_| ());
    Function {
        name,
        variables: E::variable_names(),
        read,
    }
}

fn functions() -> [Function; 7] {
    [
        function::<PublishEnvironment>("publish"),
        function::<DeliverEnvironment>("deliver"),
        function::<WakeEnvironment>("wake"),
        function::<DeadLetterEnvironment>("deadletter"),
        function::<MonitorEnvironment>("monitor"),
        function::<ManageEnvironment>("manage"),
        function::<RecordEnvironment>("record"),
    ]
}

/// The template. A tag such as `!Ref Name` is read as its name.
fn template() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../template.yaml");
    serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The variables that the template gives each function, and what each refers to. A function goes by
/// its handler.
fn given(template: &Value) -> BTreeMap<String, Variables> {
    let resources = template["Resources"].as_object().unwrap().values();
    let functions = resources.filter(|resource| resource["Type"] == "AWS::Serverless::Function");
    functions
        .map(|function| {
            let program = function["Properties"]["Handler"].as_str().unwrap();
            let everywhere = &template["Globals"]["Function"]["Environment"]["Variables"];
            let own = &function["Properties"]["Environment"]["Variables"];
            let variables = [everywhere, own]
                .into_iter()
                .filter_map(Value::as_object)
                .flatten();
            (
                program.to_owned(),
                variables
                    .map(|(name, value)| (name.clone(), text(value)))
                    .collect(),
            )
        })
        .collect()
}

/// Everything that an operator may choose for a parameter, at its borders; the default first.
fn choices(parameter: &Value) -> Vec<String> {
    let named = ["Default", "MinValue", "MaxValue"]
        .iter()
        .filter_map(|member| parameter.get(member));
    let allowed = parameter["AllowedValues"].as_array().into_iter().flatten();
    let mut choices: Vec<_> = named.chain(allowed).map(text).collect();
    for member in ["MinLength", "MaxLength"] {
        let length = parameter[member]
            .as_u64()
            .and_then(|length| usize::try_from(length).ok());
        choices.extend(length.map(|length| "x".repeat(length)));
    }
    choices
}

/// The value of a variable where the template refers to something that AWS names.
fn named_by_aws(variable: &str) -> &'static str {
    match variable {
        "STATE_BUCKET" | "DEAD_LETTER_BUCKET" | "LOG_BUCKET" => "posthaste-bucket-1a2b3c4d5e6f",
        "PUBLISH_URL" => "https://abcdefghijklmnop.lambda-url.eu-central-1.on.aws/",
        "METRICS_NAMESPACE" => "posthaste",
        "ADMIN_KEY_SHA256" => "5c1e5c1e5c1e5c1e5c1e5c1e5c1e5c1e5c1e5c1e5c1e5c1e5c1e5c1e5c1e5c1e",
        _ => "https://sqs.eu-central-1.amazonaws.com/123456789012/posthaste-queue",
    }
}

/// A value as text. Of a number that depends on a condition, or on the profile, it is the parameter
/// beside it.
fn text(value: &Value) -> String {
    let parts = value.as_array().map(Vec::as_slice);
    if let Some(
        [_, Value::Number(_), Value::String(parameter)]
        | [_, Value::String(parameter), Value::Array(_)],
    ) = parts
    {
        return parameter.clone();
    }
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn function_gets_exactly_the_variables_that_it_reads() {
    let given = given(&template());
    assert_eq!(given.len(), 7);
    for Function {
        name, variables, ..
    } in functions()
    {
        let set: BTreeSet<_> = given[name].keys().cloned().collect();
        assert_eq!(
            set, variables,
            "{name}: left what the template sets, right what the code reads"
        );
    }
}

/// Each function accepts whatever the template lets an operator choose.
#[test]
fn function_accepts_every_choice_of_the_template() {
    let template = template();
    let given = given(&template);
    let parameters = &template["Parameters"];
    for Function { name, read, .. } in functions() {
        let value = |(variable, refers): (&String, &String)| {
            let first = choices(&parameters[refers.as_str()]).into_iter().next();
            (
                variable.clone(),
                first.unwrap_or_else(|| named_by_aws(variable).to_owned()),
            )
        };
        let defaults: Variables = given[name].iter().map(value).collect();
        assert_eq!(read(&defaults), Ok(()), "{name}");
        for (variable, refers) in &given[name] {
            for choice in choices(&parameters[refers.as_str()]) {
                let mut chosen = defaults.clone();
                // These two must fit each other: a start above the most is refused by name.
                if let "REQUESTS_PER_LINK_START" | "REQUESTS_PER_LINK_MAX" = variable.as_str() {
                    chosen.insert("REQUESTS_PER_LINK_START".to_owned(), choice.clone());
                    chosen.insert("REQUESTS_PER_LINK_MAX".to_owned(), choice.clone());
                }
                chosen.insert(variable.clone(), choice);
                assert_eq!(read(&chosen), Ok(()), "{name}: {refers}");
            }
        }
    }
}

#[test]
fn the_borders_of_numbers_are_the_same_here_and_there() {
    let template = template();
    let given = given(&template);
    let parameters = &template["Parameters"];
    let mut seen = BTreeSet::new();
    for Function { name, read, .. } in functions() {
        for (variable, refers) in &given[name] {
            let parameter = &parameters[refers.as_str()];
            let (Some(min), Some(max)) = (
                parameter["MinValue"].as_i64(),
                parameter["MaxValue"].as_i64(),
            ) else {
                continue;
            };
            for outside in [min - 1, max + 1] {
                let only = Variables::from([(variable.clone(), outside.to_string())]);
                let refused = read(&only).unwrap_err().to_string();
                let expected = format!(
                    "{variable} is \"{outside}\", expected a whole number from {min} to {max}"
                );
                assert!(refused.contains(&expected), "{name}: {refused}");
            }
            seen.insert(variable.clone());
        }
    }
    let mut numbers = Numbers::default();
    table::visit(&mut numbers);
    assert!(numbers.0.len() >= 5, "{numbers:?}");
    assert_eq!(seen, numbers.0);
}
