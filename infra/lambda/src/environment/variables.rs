//! The reading of variables one by one, keeping every problem, so that all of a function's are
//! reported at once.

use std::fmt;
use std::time::Duration;

use posthaste_core::circuit::HealthSettings;
use posthaste_settings::{
    Setting, SettingRefusal, SettingValues, ValueForm, Variable, WhenAbsent, table,
};

/// Error of one variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// A needed variable is absent or empty.
    #[error("{name} is not set, expected {expected}")]
    NotSet {
        name: &'static str,
        expected: String,
    },
    /// A value means nothing.
    #[error("{name} is {value:?}, expected {expected}")]
    Unusable {
        name: &'static str,
        value: String,
        expected: String,
    },
    /// One of several settings in a variable is refused.
    #[error("{name}: {problem}")]
    Refused {
        name: &'static str,
        /// Name of the setting, and the reason.
        problem: String,
    },
    /// A value means nothing; it may be a secret, and is not shown.
    #[error("{name} is not usable, expected {expected}")]
    UnusableSecret {
        name: &'static str,
        expected: String,
    },
}

/// Error of an environment: all its problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct EnvironmentError {
    /// The problems, in the order in which the variables are read; at least one.
    pub problems: Vec<VariableError>,
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems: Vec<_> = self.problems.iter().map(ToString::to_string).collect();
        f.write_str(&problems.join("; "))
    }
}

/// Reads variables. A variable that cannot be used is noted, and reading continues with a
/// placeholder, so that the others are read too; [`EnvironmentReader::into_result`] lets no
/// placeholder out.
pub struct EnvironmentReader<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<VariableError>,
}

impl SettingValues for EnvironmentReader<'_> {
    fn get<T: Clone + Send + Sync + 'static>(&mut self, setting: &'static Setting<T>) -> Option<T> {
        let variable = setting.variable.as_ref()?;
        let text = self.text_or_default(variable)?;
        let value = parse(setting, variable, &text);
        value
            .map_err(|error| self.problems.push(variable_error(variable, text, error)))
            .ok()
    }

    fn get_list<T: Clone + Send + Sync + 'static>(
        &mut self,
        setting: &'static Setting<T>,
    ) -> Vec<T> {
        let Some(variable) = &setting.variable else {
            return Vec::new();
        };
        let Some(text) = self.text_or_default(variable) else {
            return Vec::new();
        };
        let values: Result<_, _> = text
            .split(',')
            .map(|value| parse(setting, variable, value.trim()))
            .collect();
        values
            .map_err(|error| self.problems.push(variable_error(variable, text, error)))
            .unwrap_or_default()
    }
}

impl<'a> EnvironmentReader<'a> {
    pub(super) fn new(read: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            read,
            problems: Vec::new(),
        }
    }

    /// The value of a variable that an earlier release of the function does not have.
    pub(super) fn get_where_set<T: Clone + Send + Sync + 'static>(
        &mut self,
        setting: &'static Setting<T>,
    ) -> Option<T> {
        let name = setting.variable.as_ref()?.name;
        (self.read)(name).and_then(|_| self.get(setting))
    }

    /// Records that the content of a variable is refused.
    pub(super) fn record_refusal<T>(
        &mut self,
        setting: &Setting<T>,
        error: &dyn std::error::Error,
    ) {
        if let Some(Variable { name, .. }) = setting.variable {
            self.problems.push(VariableError::Refused {
                name,
                problem: error.to_string(),
            });
        }
    }

    /// Settings for when endpoints that fail get no requests, and for how long.
    pub(super) fn link_settings(&mut self) -> HealthSettings {
        let written = self.get(&table::LINK_SETTINGS).unwrap_or_default();
        written.to_health_settings().unwrap_or_else(|error| {
            self.record_refusal(&table::LINK_SETTINGS, &error);
            HealthSettings::default()
        })
    }

    /// Greatest age of a cached topic.
    pub(super) fn registry_max_age(&mut self) -> Duration {
        Duration::from_secs(
            self.get(&table::REGISTRY_MAX_AGE_SECONDS)
                .unwrap_or_default()
                .into(),
        )
    }

    /// The settings that were read, unless there was a problem with any.
    pub(super) fn into_result<T>(self, settings: T) -> Result<T, EnvironmentError> {
        let problems = self.problems;
        if problems.is_empty() {
            Ok(settings)
        } else {
            Err(EnvironmentError { problems })
        }
    }

    /// The text of a variable, or its default. A template passes on a parameter that was left out
    /// as an empty text, so empty is not set.
    fn text_or_default(&mut self, variable: &Variable) -> Option<String> {
        let text = (self.read)(variable.name).filter(|text| !text.is_empty());
        match (text, variable.when_absent) {
            (Some(text), _) => Some(text),
            (None, WhenAbsent::Default(text)) => Some(text.to_owned()),
            (None, WhenAbsent::Nothing) => None,
            (None, WhenAbsent::Refuse) => {
                let expected = variable.form.expected_text();
                self.problems.push(VariableError::NotSet {
                    name: variable.name,
                    expected,
                });
                None
            }
        }
    }
}

/// The value of a text; `None` as the error of a text that is not of the variable's form.
fn parse<T>(
    setting: &Setting<T>,
    variable: &Variable,
    text: &str,
) -> Result<T, Option<SettingRefusal>> {
    let is_of_form = match variable.form {
        ValueForm::Number(least, greatest) => text
            .parse()
            .is_ok_and(|number: i64| (least..=greatest).contains(&number)),
        ValueForm::Choice(choices) => choices.iter().any(|choice| choice.name == text),
        _ => true,
    };
    if is_of_form {
        (setting.parse)(text).map_err(Some)
    } else {
        Err(None)
    }
}

fn variable_error(
    variable: &Variable,
    value: String,
    error: Option<SettingRefusal>,
) -> VariableError {
    let name = variable.name;
    let expected = variable.form.expected_text();
    match (variable.form, error) {
        (ValueForm::Secret(_), _) => VariableError::UnusableSecret { name, expected },
        (ValueForm::Json, Some(error)) => VariableError::Refused {
            name,
            problem: error.to_string(),
        },
        _ => VariableError::Unusable {
            name,
            value,
            expected,
        },
    }
}
