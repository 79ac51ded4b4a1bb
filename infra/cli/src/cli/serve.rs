//! The command line of `serve`, made from the table of settings.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use posthaste_settings::table::{self, SettingVisitor};
use posthaste_settings::{ServeOption, Setting, SettingRefusal, SettingValues, ValueForm};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{ParseError, Targets};

/// The options that were given to `serve`, with the defaults of the others.
#[derive(Debug, Clone)]
pub struct ServeArgs(ArgMatches);

/// The options of the table.
#[derive(Default)]
struct OptionCollector(Vec<Arg>);

impl SettingValues for &ServeArgs {
    fn get<T: Clone + Send + Sync + 'static>(&mut self, setting: &'static Setting<T>) -> Option<T> {
        self.0.get_one(setting.option.as_ref()?.name).cloned()
    }

    fn get_list<T: Clone + Send + Sync + 'static>(
        &mut self,
        setting: &'static Setting<T>,
    ) -> Vec<T> {
        let values = setting
            .option
            .as_ref()
            .and_then(|option| self.0.get_many(option.name));
        values.into_iter().flatten().cloned().collect()
    }
}

impl Args for ServeArgs {
    fn augment_args(command: Command) -> Command {
        let mut options = OptionCollector::default();
        table::visit(&mut options);
        command.args(options.0)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl SettingVisitor for OptionCollector {
    fn visit<T: Clone + Send + Sync + 'static>(&mut self, setting: &'static Setting<T>) {
        let Some(option) = &setting.option else {
            return;
        };
        let help = option.help.strip_suffix('.').unwrap_or(option.help);
        let arg = Arg::new(option.name)
            .long(option.name)
            .env(option.variable)
            .value_name(option.value)
            .help(help);
        let arg = arg
            .value_parser(option_parser(option, setting.parse))
            .default_values(option.default);
        let arg = arg.help_heading(option.heading);
        self.0.push(match option.form {
            // A key may begin with a hyphen.
            ValueForm::Secret(_) => arg.hide_env_values(true).allow_hyphen_values(true),
            ValueForm::List(_) => arg.action(ArgAction::Append).value_delimiter(','),
            ValueForm::Files => arg.action(ArgAction::Append),
            _ => arg,
        });
    }
}

fn option_parser<T>(
    option: &'static ServeOption,
    parse: fn(&str) -> Result<T, SettingRefusal>,
) -> ValueParser
where
    T: Clone + Send + Sync + 'static,
{
    match option.form {
        // The table's crate does not know the filters of the log.
        _ if table::LOG_FILTER
            .option
            .is_some_and(|it| it.name == option.name) =>
        {
            ValueParser::new(check_log_filter)
        }
        // A path need not be text.
        ValueForm::File | ValueForm::Files => value_parser!(PathBuf),
        ValueForm::Choice(choices) => {
            let values = choices
                .iter()
                .map(|choice| PossibleValue::new(choice.name).help(choice.help));
            PossibleValuesParser::new(values)
                .try_map(move |text| parse(&text))
                .into()
        }
        ValueForm::Number(least, greatest) => {
            ValueParser::new(move |text: &str| -> Result<T, SettingRefusal> {
                let number: i64 = text.parse()?;
                if !(least..=greatest).contains(&number) {
                    return Err(OutOfBounds {
                        number,
                        least,
                        greatest,
                    }
                    .into());
                }
                parse(text)
            })
        }
        _ => ValueParser::new(parse),
    }
}

/// Error of a number that the option does not take.
#[derive(Debug, thiserror::Error)]
#[error("{number} is not in {least}..={greatest}")]
struct OutOfBounds {
    number: i64,
    least: i64,
    greatest: i64,
}

/// The same filter without spaces, if every word in it is a level or has one. `tracing` takes any other word for
/// the name of a target, so that a mistyped level would silence everything else.
fn check_log_filter(text: &str) -> Result<String, LogFilterError> {
    let words: Vec<_> = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    for word in &words {
        if word.contains('[') {
            return Err(LogFilterError::Span((*word).to_owned()));
        }
        if !word.contains('=') && word.parse::<LevelFilter>().is_err() {
            return Err(LogFilterError::NotALevel((*word).to_owned()));
        }
    }
    // `Targets` takes spaces for a part of a name, and an empty word for a level.
    let filter = words.join(",");
    filter.parse::<Targets>()?;
    Ok(filter)
}

/// Error of a text that is no log filter.
#[derive(Debug, thiserror::Error)]
enum LogFilterError {
    #[error(transparent)]
    Directive(#[from] ParseError),
    #[error(
        "{0:?} is not one of off, error, warn, info, debug, trace; of one target it is written as {0}=debug"
    )]
    NotALevel(String),
    #[error(
        "{0:?} asks for a span, and serve has none; a target and its level are written as posthaste_deliver=debug"
    )]
    Span(String),
}
