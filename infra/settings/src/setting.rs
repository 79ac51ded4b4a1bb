//! A row of the table: where a setting is given, in which form, and how its text is read.

use std::error::Error;
use std::fmt;

/// Error of a text that a setting does not take.
pub type SettingRefusal = Box<dyn Error + Send + Sync>;

/// A setting of type `T`, or of several `T` where its form is a list.
pub struct Setting<T> {
    /// Option of `serve`, if it has one.
    pub option: Option<ServeOption>,
    /// Variable of the Lambda programs, if it has one.
    pub variable: Option<Variable>,
    /// Reads one value. Each host first checks a number against its bounds, and a choice against
    /// its list.
    pub parse: fn(&str) -> Result<T, SettingRefusal>,
}

/// The values that were given, on a command line or in an environment.
pub trait SettingValues {
    /// The value of a setting, or its default in this place. `None` if it has no value, or is not
    /// offered here. A value that is refused is recorded as an error of its own.
    fn get<T: Clone + Send + Sync + 'static>(&mut self, setting: &'static Setting<T>) -> Option<T>;

    /// The values of a setting that is a list, in the same way.
    fn get_list<T: Clone + Send + Sync + 'static>(
        &mut self,
        setting: &'static Setting<T>,
    ) -> Vec<T>;
}

/// An option of `serve`.
#[derive(Debug, Clone, Copy)]
pub struct ServeOption {
    /// Name, without `--`.
    pub name: &'static str,
    /// Variable that is read where the option is not given.
    pub variable: &'static str,
    /// Word for its value in `--help`.
    pub value: &'static str,
    /// Value where neither is given. Help names a default that depends on something else.
    pub default: Option<&'static str>,
    /// Form of its value.
    pub form: ValueForm,
    /// Heading in `--help` and on the reference page; `None` for what most servers need.
    pub heading: Option<&'static str>,
    /// Text of `--help`, and of the reference page.
    pub help: &'static str,
    /// More of it, for the reference page alone.
    pub more: &'static str,
}

/// A variable in the environment of Lambda programs.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Name.
    pub name: &'static str,
    /// Parameter of the template that gives it; `None` where the template itself knows the value.
    pub parameter: Option<&'static str>,
    /// The value where the variable is empty or absent.
    pub when_absent: WhenAbsent,
    /// Form of its value.
    pub form: ValueForm,
    /// Functions that read it.
    pub readers: &'static [Function],
}

/// The value of a variable that is empty or absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenAbsent {
    /// None: the function does not start.
    Refuse,
    /// None: the function works without it.
    Nothing,
    /// The text of the default.
    Default(&'static str),
}

/// The form of a value, in the words in which it is asked for.
#[derive(Debug, Clone, Copy)]
pub enum ValueForm {
    /// A whole number, with the least and the greatest.
    Number(i64, i64),
    /// One of these.
    Choice(&'static [ChoiceValue]),
    /// A text, as it fits "expected …".
    Text(&'static str),
    /// A text that is never shown.
    Secret(&'static str),
    /// Texts with commas between them, as they fit "expected …". The option can be given more than
    /// once.
    List(&'static str),
    /// The path of a file.
    File,
    /// Paths of files; the option can be given more than once.
    Files,
    /// One line of JSON, whose own errors say what is wrong.
    Json,
}

/// One of the values that may be chosen.
#[derive(Debug, Clone, Copy)]
pub struct ChoiceValue {
    /// The value.
    pub name: &'static str,
    /// The meaning, for `--help`.
    pub help: &'static str,
}

/// A function, by the name of its Lambda program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    Publish,
    Deliver,
    Wake,
    Deadletter,
    Monitor,
    Manage,
    Record,
}

impl ServeOption {
    /// An option without a default, whose value is a text.
    pub(crate) const fn new(
        name: &'static str,
        variable: &'static str,
        value: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            variable,
            value,
            default: None,
            form: ValueForm::Text(""),
            heading: None,
            help,
            more: "",
        }
    }

    pub(crate) const fn default(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    pub(crate) const fn form(self, form: ValueForm) -> Self {
        Self { form, ..self }
    }

    pub(crate) const fn under(self, heading: &'static str) -> Self {
        Self {
            heading: Some(heading),
            ..self
        }
    }

    pub(crate) const fn more(self, more: &'static str) -> Self {
        Self { more, ..self }
    }
}

impl Variable {
    /// A variable that must be given, and that no parameter sets.
    pub(crate) const fn new(
        name: &'static str,
        form: ValueForm,
        readers: &'static [Function],
    ) -> Self {
        Self {
            name,
            parameter: None,
            when_absent: WhenAbsent::Refuse,
            form,
            readers,
        }
    }

    pub(crate) const fn parameter(self, parameter: &'static str) -> Self {
        Self {
            parameter: Some(parameter),
            ..self
        }
    }

    pub(crate) const fn default(self, default: &'static str) -> Self {
        Self {
            when_absent: WhenAbsent::Default(default),
            ..self
        }
    }

    pub(crate) const fn optional(self) -> Self {
        Self {
            when_absent: WhenAbsent::Nothing,
            ..self
        }
    }
}

impl ValueForm {
    /// Words for a value of this form, as they fit "expected …".
    pub fn expected_text(&self) -> String {
        match self {
            Self::Number(least, greatest) => format!("a whole number from {least} to {greatest}"),
            Self::Choice(choices) => {
                let names: Vec<_> = choices.iter().map(|choice| choice.name).collect();
                let (last, others) = names.split_last().unwrap_or((&"", &[]));
                format!("{} or {last}", others.join(", "))
            }
            Self::Text(expected) | Self::Secret(expected) | Self::List(expected) => {
                (*expected).to_owned()
            }
            Self::File | Self::Files => "the path of a file".to_owned(),
            Self::Json => "one line of JSON".to_owned(),
        }
    }
}

impl Function {
    /// Every function.
    pub const ALL: [Self; 7] = [
        Self::Publish,
        Self::Deliver,
        Self::Wake,
        Self::Deadletter,
        Self::Monitor,
        Self::Manage,
        Self::Record,
    ];

    /// Name of its program.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Deliver => "deliver",
            Self::Wake => "wake",
            Self::Deadletter => "deadletter",
            Self::Monitor => "monitor",
            Self::Manage => "manage",
            Self::Record => "record",
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_asked_for_in_words() {
        const fn choice(name: &'static str) -> ChoiceValue {
            ChoiceValue { name, help: "" }
        }
        let check = |form: ValueForm, expected: &str| assert_eq!(form.expected_text(), expected);
        check(ValueForm::Number(0, 300), "a whole number from 0 to 300");
        check(
            ValueForm::Choice(const { &[choice("advise"), choice("delay")] }),
            "advise or delay",
        );
        check(
            ValueForm::Choice(
                const { &[choice("stack"), choice("topic"), choice("subscription")] },
            ),
            "stack, topic or subscription",
        );
        check(ValueForm::Secret("the digest"), "the digest");
    }
}
