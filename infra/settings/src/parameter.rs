//! A parameter of the template: the values that it takes, and the text that AWS's console shows.

/// A parameter of the template.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// The values that it takes.
    pub value: ParameterValue,
    /// The pattern that its text must match.
    pub pattern: Option<TextPattern>,
    /// The most characters of its text.
    pub length_max: Option<u16>,
    /// Words beside the name in AWS's console, if it is one to read first.
    pub label: Option<&'static str>,
    /// Text of AWS's console, and of the reference page.
    pub description: &'static str,
}

/// The values that a parameter takes, and its default.
#[derive(Debug, Clone, Copy)]
pub enum ParameterValue {
    /// Those of the setting whose row names the parameter.
    OfSetting,
    /// A text, with its default.
    Text(&'static str),
    /// Texts with commas between them. The default is none.
    List,
    /// A whole number.
    Number {
        default: i64,
        least: i64,
        greatest: Option<i64>,
    },
    /// One of these numbers.
    NumberChoice {
        default: i64,
        choices: &'static [i64],
    },
    /// One of these texts.
    ChoiceValue {
        default: &'static str,
        choices: &'static [&'static str],
    },
}

/// A regular expression for the whole text of a parameter.
#[derive(Debug, Clone, Copy)]
pub struct TextPattern {
    /// The expression, as CloudFormation reads it.
    pub expression: &'static str,
    /// Text that CloudFormation shows for a value that does not match.
    pub expected: &'static str,
}

/// Parameters of one subject.
#[derive(Debug, Clone, Copy)]
pub struct ParameterGroup {
    /// The subject.
    pub subject: &'static str,
    /// The parameters of the group, in their order.
    pub parameters: &'static [Parameter],
}

impl Parameter {
    const fn new(name: &'static str, value: ParameterValue, description: &'static str) -> Self {
        Self {
            name,
            value,
            pattern: None,
            length_max: None,
            label: None,
            description,
        }
    }

    /// A parameter that gives a function the variable of a setting.
    pub(crate) const fn of_setting(name: &'static str, description: &'static str) -> Self {
        Self::new(name, ParameterValue::OfSetting, description)
    }

    pub(crate) const fn text(
        name: &'static str,
        default: &'static str,
        description: &'static str,
    ) -> Self {
        Self::new(name, ParameterValue::Text(default), description)
    }

    pub(crate) const fn list(name: &'static str, description: &'static str) -> Self {
        Self::new(name, ParameterValue::List, description)
    }

    pub(crate) const fn number(
        name: &'static str,
        default: i64,
        least: i64,
        greatest: i64,
        description: &'static str,
    ) -> Self {
        let value = ParameterValue::Number {
            default,
            least,
            greatest: Some(greatest),
        };
        Self::new(name, value, description)
    }

    /// A number without an upper bound.
    pub(crate) const fn number_from(
        name: &'static str,
        default: i64,
        least: i64,
        description: &'static str,
    ) -> Self {
        let value = ParameterValue::Number {
            default,
            least,
            greatest: None,
        };
        Self::new(name, value, description)
    }

    pub(crate) const fn number_of(
        name: &'static str,
        default: i64,
        choices: &'static [i64],
        description: &'static str,
    ) -> Self {
        Self::new(
            name,
            ParameterValue::NumberChoice { default, choices },
            description,
        )
    }

    pub(crate) const fn choice(
        name: &'static str,
        default: &'static str,
        choices: &'static [&'static str],
        description: &'static str,
    ) -> Self {
        Self::new(
            name,
            ParameterValue::ChoiceValue { default, choices },
            description,
        )
    }

    pub(crate) const fn pattern(self, expression: &'static str, expected: &'static str) -> Self {
        Self {
            pattern: Some(TextPattern {
                expression,
                expected,
            }),
            ..self
        }
    }

    pub(crate) const fn label(self, label: &'static str) -> Self {
        Self {
            label: Some(label),
            ..self
        }
    }

    pub(crate) const fn length_max(self, characters: u16) -> Self {
        Self {
            length_max: Some(characters),
            ..self
        }
    }
}
