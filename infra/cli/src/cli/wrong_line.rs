//! A command line that is wrong, in sentences: what is wrong with it, and the way out.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;

use clap::ArgMatches;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Value, json};

/// The exit code of a command line that is wrong.
pub const WRONG_LINE: u8 = 2;

/// Most characters of an argument that are repeated.
const SHOWN_CHARS_MAX: usize = 80;

/// Words for making something.
const MAKE: &[&str] = &["add", "new", "make"];
const CHANGE: &[&str] = &["put", "update", "edit", "apply", "patch"];
const REMOVE: &[&str] = &["remove", "rm", "del", "drop", "destroy"];
const LOOK: &[&str] = &["get", "describe", "info", "view", "inspect", "read"];
const ALL: &[&str] = &["ls", "all", "find", "search"];

/// What to do instead of a command that is not there: the command above it, the words for it, and
/// the way out. A word that is only mistyped is not here.
const INSTEAD: &[(&str, &[&str], &str)] = &[
    ("posthaste topics", MAKE, "`posthaste topics create TOPIC`"),
    (
        "posthaste topics",
        CHANGE,
        "`posthaste apply -f topics.yaml`, which creates and changes the topics that the file declares",
    ),
    (
        "posthaste topics",
        &["set"],
        "`posthaste apply -f topics.yaml --keep`, which changes the members that the file names",
    ),
    (
        "posthaste subscriptions",
        MAKE,
        "`posthaste subscriptions create TOPIC NAME --endpoint URL`",
    ),
    (
        "posthaste subscriptions",
        CHANGE,
        "`posthaste subscriptions set TOPIC NAME MEMBER=VALUE`, or `posthaste apply -f topics.yaml`, which \
         creates and changes the subscriptions that the file declares below their topic",
    ),
    ("posthaste topics", LOOK, "`posthaste topics show TOPIC`"),
    ("posthaste topics", ALL, "`posthaste topics list`"),
    (
        "posthaste topics",
        REMOVE,
        "`posthaste topics delete TOPIC`",
    ),
    (
        "posthaste subscriptions",
        LOOK,
        "`posthaste subscriptions show TOPIC NAME`",
    ),
    (
        "posthaste subscriptions",
        ALL,
        "`posthaste subscriptions list TOPIC`",
    ),
    (
        "posthaste subscriptions",
        REMOVE,
        "`posthaste subscriptions delete TOPIC NAME`",
    ),
    (
        "posthaste subscriptions",
        &["rotate", "secret", "secrets"],
        "`posthaste subscriptions rotate-secret TOPIC NAME`",
    ),
    (
        "posthaste events",
        &["create", "add", "new", "put", "send", "publish", "post"],
        "`posthaste publish TOPIC -f event.json`",
    ),
    ("posthaste events", LOOK, "`posthaste events show TOPIC ID`"),
    ("posthaste events", ALL, "`posthaste events list TOPIC`"),
    (
        "posthaste events",
        &["retry", "redeliver", "again"],
        "`posthaste events resend TOPIC SUBSCRIPTION ID` for one event, `posthaste events replay` for those of \
         a time",
    ),
    (
        "posthaste attempts",
        &["tail", "follow", "watch", "logs"],
        "`posthaste attempts list TOPIC SUBSCRIPTION --follow`",
    ),
    (
        "posthaste dead-letters",
        LOOK,
        "`posthaste dead-letters show OBJECT`, with an object that `posthaste dead-letters list` names",
    ),
    (
        "posthaste dead-letters",
        ALL,
        "`posthaste dead-letters list`",
    ),
    (
        "posthaste dead-letters",
        REMOVE,
        "`posthaste dead-letters delete TOPIC SUBSCRIPTION`",
    ),
    (
        "posthaste dead-letters",
        &["retry", "redrive", "resend", "redeliver"],
        "`posthaste dead-letters replay TOPIC SUBSCRIPTION`",
    ),
    (
        "posthaste replays",
        &["create", "add", "new", "start", "run", "begin"],
        "`posthaste dead-letters replay TOPIC SUBSCRIPTION`, or `posthaste events replay` for what the \
         delivery log has",
    ),
    ("posthaste replays", LOOK, "`posthaste replays show ID`"),
    ("posthaste replays", REMOVE, "`posthaste replays cancel ID`"),
    (
        "posthaste",
        &[
            "create",
            "subscribe",
            "configure",
            "config",
            "init",
            "deploy",
        ],
        "`posthaste apply -f topics.yaml`, which creates topics and subscriptions",
    ),
    (
        "posthaste",
        &["start", "run", "server", "up", "daemon"],
        "`posthaste serve`",
    ),
    (
        "posthaste",
        &["send", "post", "emit", "push"],
        "`posthaste publish TOPIC -f event.json`",
    ),
    (
        "posthaste",
        &["replay", "redrive", "retry"],
        "`posthaste dead-letters replay`, or `posthaste events replay` for what the delivery log has",
    ),
    (
        "posthaste",
        &["logs", "log", "tail", "watch"],
        "`posthaste attempts list TOPIC SUBSCRIPTION --follow`",
    ),
    (
        "posthaste",
        &["test"],
        "`posthaste subscriptions test TOPIC NAME`",
    ),
    (
        "posthaste",
        &["status", "stats"],
        "`posthaste pressure` and `posthaste links`",
    ),
    (
        "posthaste",
        &["fsck", "verify", "repair"],
        "`posthaste check`",
    ),
    ("posthaste", &["version"], "`posthaste --version`"),
];

/// What to give instead of an option that is not there.
const OPTION_INSTEAD: [(&str, &str); 12] = [
    ("--server", "--url"),
    ("--host", "--url"),
    ("--endpoint", "--url"),
    ("--token", "--key"),
    ("--api-key", "--key"),
    ("--apikey", "--key"),
    ("--admin-key", "--key"),
    ("--port", "--listen"),
    ("--data", "--data-dir"),
    ("--output", "--json"),
    ("--format", "--json"),
    ("--yaml", "--file"),
];

/// A command line that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct WrongLine {
    fault: String,
    way_out: Option<String>,
    usage: Option<String>,
}

impl WrongLine {
    /// What is wrong. None for help and the version, which are no mistakes, and for a command line
    /// without a command, which is answered with the help.
    pub fn from_clap(error: &clap::Error) -> Option<Self> {
        if !error.use_stderr()
            || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        {
            return None;
        }
        let usage = usage_line(error);
        let command = usage.as_deref().map_or("posthaste", command_in_usage);
        let (fault, way_out) = match error.kind() {
            ErrorKind::InvalidSubcommand => explain_unknown_command(error, command),
            ErrorKind::UnknownArgument => explain_unknown_option(error, command),
            ErrorKind::MissingRequiredArgument => {
                let missing = context_texts(error, ContextKind::InvalidArg).join("`, `");
                (format!("{command} needs `{missing}`"), None)
            }
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
                (explain_bad_value(error), None)
            }
            ErrorKind::ArgumentConflict => {
                let one = context_texts(error, ContextKind::InvalidArg).join("`, `");
                let others = context_texts(error, ContextKind::PriorArg);
                let fault = if others.is_empty() || others == [one.as_str()] {
                    format!("`{one}` may be given only once")
                } else {
                    format!(
                        "`{one}` and `{}` cannot be given together",
                        others.join("`, `")
                    )
                };
                (fault, None)
            }
            ErrorKind::TooManyValues => {
                let value = quote_argument(&context_text(error, ContextKind::InvalidValue));
                let argument = context_text(error, ContextKind::InvalidArg);
                (
                    format!("`{argument}` takes no more values, and {value} is one"),
                    None,
                )
            }
            ErrorKind::InvalidUtf8 => ("an argument is not UTF-8".to_owned(), None),
            _ => (first_line(error), None),
        };
        Some(Self {
            fault,
            way_out,
            usage,
        })
    }

    /// The whole story for people.
    pub fn report(&self) -> String {
        let mut text = format!("error: {}", self.fault);
        if let Some(way_out) = &self.way_out {
            let _ = write!(text, "\n  try: {way_out}");
        }
        if let Some(usage) = &self.usage {
            let command = command_in_usage(usage);
            let _ = write!(text, "\n  usage: {usage}\n  help: {command} --help");
        } else {
            text.push_str("\n  help: posthaste --help");
        }
        text
    }

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        json!({ "error": { "message": self.report(), "exitCode": WRONG_LINE } })
    }
}

/// Whether these arguments ask for JSON. Of a command line that is wrong, nothing else is known.
pub fn asks_for_json(arguments: &[OsString]) -> bool {
    let mut options = arguments.iter().take_while(|argument| *argument != "--");
    options.any(|argument| argument == "--json")
}

/// The error with the usage of the command that the line names, where it has none: for a value that
/// is not taken, the library does not say which command it was for.
pub(super) fn with_usage(
    mut error: clap::Error,
    command: clap::Command,
    arguments: &[OsString],
) -> clap::Error {
    if error.use_stderr() && usage_line(&error).is_none() {
        let usage = usage_of_named(command, arguments);
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    error
}

/// The usage of the command that a line names, whatever is wrong with the rest of the line.
fn usage_of_named(command: clap::Command, arguments: &[OsString]) -> StyledStr {
    let mut command = command.ignore_errors(true);
    command.build();
    let matches = command.try_get_matches_from_mut(arguments).ok();
    let mut named = &command;
    let mut matches = matches.as_ref();
    while let Some((name, below)) = matches.and_then(ArgMatches::subcommand) {
        let Some(command) = named.find_subcommand(name) else {
            break;
        };
        named = command;
        matches = Some(below);
    }
    named.clone().render_usage()
}

fn explain_unknown_command(error: &clap::Error, command: &str) -> (String, Option<String>) {
    let word = context_text(error, ContextKind::InvalidSubcommand);
    let fault = format!("{command} has no command {}", quote_argument(&word));
    let asked = word.to_lowercase();
    let instead = INSTEAD
        .iter()
        .find(|(of, words, _)| *of == command && words.contains(&asked.as_str()));
    let way_out = if let Some((_, _, way_out)) = instead {
        Some((*way_out).to_owned())
    } else {
        let alike = context_texts(error, ContextKind::SuggestedSubcommand);
        let alike: Vec<_> = alike
            .iter()
            .map(|name| format!("`{command} {name}`"))
            .collect();
        (!alike.is_empty()).then(|| alike.join(" or "))
    };
    (fault, way_out)
}

fn explain_unknown_option(error: &clap::Error, command: &str) -> (String, Option<String>) {
    let word = context_text(error, ContextKind::InvalidArg);
    if !word.starts_with('-') {
        let fault = format!(
            "{command} takes no more arguments, and {} is one",
            quote_argument(&word)
        );
        return (fault, None);
    }
    let name = word.split('=').next().unwrap_or_default();
    let fault = format!("{command} has no option {}", quote_argument(name));
    let alike = context_text(error, ContextKind::SuggestedArg);
    let instead = OPTION_INSTEAD.iter().find(|(asked, _)| *asked == name);
    let way_out = match instead {
        Some((_, instead)) => Some(format!("`{instead}`")),
        None if !alike.is_empty() => Some(format!("`{alike}`")),
        None => None,
    };
    (fault, way_out)
}

fn explain_bad_value(error: &clap::Error) -> String {
    let argument = context_text(error, ContextKind::InvalidArg);
    let value = context_text(error, ContextKind::InvalidValue);
    let allowed = context_texts(error, ContextKind::ValidValue);
    let found = if value.is_empty() {
        "found nothing".to_owned()
    } else {
        format!("found {}", quote_argument(&value))
    };
    if !allowed.is_empty() {
        return format!(
            "`{argument}`: expected one of {}, {found}",
            allowed.join(", ")
        );
    }
    let reason = error.source().map(ToString::to_string).unwrap_or_default();
    match expected_number(&reason) {
        Some(expected) => format!("`{argument}`: expected {expected}, {found}"),
        None if reason.is_empty() => format!("`{argument}`: expected a value, {found}"),
        None => format!("`{argument}` is {}: {reason}", quote_argument(&value)),
    }
}

/// What a parser of numbers expected, where its own words do not say it.
fn expected_number(reason: &str) -> Option<String> {
    const NO_NUMBER: [&str; 4] = [
        "invalid digit found in string",
        "cannot parse integer from empty string",
        "number too large to fit in target type",
        "number too small to fit in target type",
    ];
    if NO_NUMBER.contains(&reason) {
        return Some("a whole number".to_owned());
    }
    // `0 is not in 1..=10000`
    let (_, range) = reason.split_once(" is not in ")?;
    let (least, greatest) = range.split_once("..")?;
    Some(match greatest.strip_prefix('=') {
        Some(greatest) => format!("{least} to {greatest}"),
        None => format!("{least} or more"),
    })
}

/// The usage without its heading, in one line.
fn usage_line(error: &clap::Error) -> Option<String> {
    let usage = match error.get(ContextKind::Usage)? {
        ContextValue::StyledStr(usage) => usage.to_string(),
        _ => return None,
    };
    let words: Vec<_> = usage.split_whitespace().skip(1).collect();
    Some(words.join(" "))
}

/// The command of a usage: `posthaste topics` of `posthaste topics [OPTIONS] [COMMAND]`.
fn command_in_usage(usage: &str) -> &str {
    let end = usage.find([' ', '\t']).map_or(usage.len(), |_| {
        usage
            .match_indices(' ')
            .map(|(at, _)| at)
            .find(|at| usage[at + 1..].starts_with(['[', '<', '-']))
            .unwrap_or(usage.len())
    });
    &usage[..end]
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn context_text(error: &clap::Error, kind: ContextKind) -> String {
    context_texts(error, kind)
        .into_iter()
        .next()
        .unwrap_or_default()
}

fn context_texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// An argument as it is repeated: in quotes, with what is no letter or sign as its number.
fn quote_argument(argument: &str) -> String {
    let mut shown: String = argument.chars().take(SHOWN_CHARS_MAX).collect();
    if argument.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    format!("{shown:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::CommandLine;
    use clap::CommandFactory;

    fn report(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        let error = CommandLine::from_arguments(words).unwrap_err();
        WrongLine::from_clap(&error).map_or_else(|| "no mistake".to_owned(), |wrong| wrong.report())
    }

    fn check(line: &str, fault: &str, way_out: Option<&str>) {
        let report = report(line);
        let mut lines = report.lines();
        assert_eq!(
            lines.next(),
            Some(format!("error: {fault}").as_str()),
            "{line}"
        );
        let second = lines.next().unwrap_or_default().trim();
        match way_out {
            Some(way_out) => assert!(second.starts_with(&format!("try: {way_out}")), "{report}"),
            None => assert!(
                second.starts_with("usage: posthaste") || second.starts_with("help: posthaste"),
                "{report}"
            ),
        }
        assert!(
            report
                .lines()
                .last()
                .unwrap()
                .starts_with("  help: posthaste"),
            "{report}"
        );
    }

    #[test]
    fn command_that_is_not_there_has_a_way_out() {
        let create = Some("`posthaste topics create TOPIC`");
        let fault = "posthaste topics has no command \"add\"";
        check("posthaste topics add x", fault, create);
        let set = Some("`posthaste subscriptions set TOPIC NAME MEMBER=VALUE`");
        let fault = "posthaste subscriptions has no command \"update\"";
        check("posthaste subscriptions update orders x", fault, set);
        for (command, words, way_out) in INSTEAD {
            for word in *words {
                let fault = format!("{command} has no command {word:?}");
                check(&format!("{command} {word}"), &fault, Some(way_out));
            }
        }
        check(
            "posthaste topics lst",
            "posthaste topics has no command \"lst\"",
            Some("`posthaste topics list`"),
        );
        check(
            "posthaste frobnicate",
            "posthaste has no command \"frobnicate\"",
            None,
        );
    }

    #[test]
    fn option_or_argument_that_is_not_there_is_named() {
        check(
            "posthaste topics list --server http://a",
            "posthaste topics list has no option \"--server\"",
            Some("`--url`"),
        );
        check(
            "posthaste publish orders --fil x",
            "posthaste publish has no option \"--fil\"",
            Some("`--file`"),
        );
        check(
            "posthaste topics show a b",
            "posthaste topics show takes no more arguments, and \"b\" is one",
            None,
        );
        check(
            "posthaste events show",
            "posthaste events show needs `<ID>`",
            None,
        );
        check(
            "posthaste apply",
            "posthaste apply needs `--file <FILE>`",
            None,
        );
    }

    #[test]
    fn value_that_is_not_taken_is_named_with_what_is() {
        check(
            "posthaste dead-letters list --limit 0",
            "`--limit <LIMIT>`: expected 1 to 10000, found \"0\"",
            None,
        );
        check(
            "posthaste dead-letters list --limit many",
            "`--limit <LIMIT>`: expected a whole number, found \"many\"",
            None,
        );
        check(
            "posthaste serve --requests-per-link-max 0",
            "`--requests-per-link-max <NUMBER>`: expected 1 to 65535, found \"0\"",
            None,
        );
        check(
            "posthaste serve --console maybe",
            "`--console <CHOICE>`: expected one of on, off, found \"maybe\"",
            None,
        );
        check(
            "posthaste serve --drain-timeout 60",
            "`--drain-timeout <DURATION>` is \"60\": expected a duration such as 10s, 5m, 1h30m or 1d, or in \
             ISO 8601 such as PT10S",
            None,
        );
        let both = report("posthaste dead-letters replay a b --wait --dry-run");
        let is_said = ["`--wait`", "`--dry-run`", " cannot be given together"]
            .iter()
            .all(|word| both.contains(word));
        assert!(is_said, "{both}");
    }

    /// Each command with the words that its options need to be reached.
    fn commands(of: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        let path = format!("{path}{}", of.get_name());
        for below in of.get_subcommands() {
            commands(below, &format!("{path} "), found);
        }
        found.push((path, of.clone()));
    }

    #[test]
    fn bad_value_of_every_command_points_to_its_own_help() {
        let mut command = CommandLine::command();
        command.build();
        let mut found = Vec::new();
        commands(&command, "", &mut found);
        let mut checked = 0;
        for (path, command) in found {
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                let line = format!("{path} --{option}=\u{1}");
                let Err(error) = CommandLine::from_arguments(line.split(' ').map(OsString::from))
                else {
                    continue;
                };
                let is_value = matches!(
                    error.kind(),
                    ErrorKind::InvalidValue | ErrorKind::ValueValidation
                );
                if !is_value {
                    continue;
                }
                let report = WrongLine::from_clap(&error).unwrap().report();
                assert!(report.contains(&format!("`--{option}")), "{report}");
                let help = format!("\n  help: {path} --help");
                assert!(report.ends_with(&help), "{line}: {report}");
                checked += 1;
            }
        }
        assert!(checked > 50, "{checked}");
    }

    #[test]
    fn bad_value_points_to_the_help_wherever_it_stands() {
        let check = |line: &str, command: &str| {
            let help = format!("\n  help: {command} --help");
            let report = report(line);
            assert!(report.ends_with(&help), "{line}: {report}");
        };
        check(
            "posthaste dead-letters list --limit 0",
            "posthaste dead-letters list",
        );
        check(
            "posthaste --json dead-letters list --limit 0 --url http://a",
            "posthaste dead-letters list",
        );
        check(
            "posthaste dead-letters --key list list --limit 0",
            "posthaste dead-letters list",
        );
        check("posthaste completions tcsh", "posthaste completions");
        check("posthaste serve --console maybe", "posthaste serve");
    }

    #[test]
    fn repeated_argument_is_escaped_and_cut() {
        let wrong = report("posthaste topics \u{1b}[2J\u{202e}x");
        assert!(wrong.contains("\"\\u{1b}[2J\\u{202e}x\""), "{wrong}");
        let wrong = report(&format!("posthaste topics {}", "y".repeat(10_000)));
        assert!(wrong.lines().next().unwrap().len() < 200, "{wrong}");
    }

    #[test]
    fn help_is_no_mistake() {
        assert_eq!(report("posthaste --help"), "no mistake");
        assert_eq!(report("posthaste topics list --help"), "no mistake");
        assert_eq!(report("posthaste --version"), "no mistake");
        assert_eq!(report("posthaste"), "no mistake");
    }
}
