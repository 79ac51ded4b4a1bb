//! Failing endpoints as a command line sets them: a file of settings over their defaults
//! (`core::api::LinkSettings`).

use std::path::Path;

use posthaste_cli::commands::read_input;
use posthaste_cli::error::CommandError;
use posthaste_cli::yaml::{FileMistakes, parse, rule_violation};
use posthaste_core::api::LinkSettings;
use posthaste_core::circuit::HealthSettings;

/// The settings of the file, over the defaults.
pub(super) fn read_settings(file: Option<&Path>) -> Result<HealthSettings, CommandError> {
    match file {
        Some(path) => Ok(parse_settings(path, &read_input(path)?)?),
        None => Ok(HealthSettings::default()),
    }
}

fn parse_settings(path: &Path, text: &[u8]) -> Result<HealthSettings, FileMistakes> {
    // An empty file changes nothing.
    let written: LinkSettings = parse(path, text)?;
    let applied = written.to_health_settings();
    applied.map_err(|error| rule_violation(path, text, Some(error.member()), &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn parse(text: &str) -> Result<HealthSettings, String> {
        parse_settings(Path::new("a.yaml"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_is_laid_over_the_defaults() {
        let settings = parse("# Sooner than usual.\nglitchHold: PT10S\nfirstHold: PT1M\n").unwrap();
        let expected = HealthSettings {
            glitch_hold: Duration::from_secs(10),
            first_hold: Duration::from_mins(1),
            ..HealthSettings::default()
        };
        assert_eq!(settings, expected);
        for text in ["{}", "# nothing yet\n", ""] {
            assert_eq!(parse(text), Ok(HealthSettings::default()), "{text:?}");
        }
    }

    #[test]
    fn an_error_names_the_file_the_line_and_the_key() {
        let refused = |text: &str, expected: &str| {
            let message = parse(text).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        };
        refused(
            "# ours\nprobeLease: PT1M\n",
            "a.yaml:2:13: probeLease is 60s; expected 75s to 900s",
        );
        refused(
            "glitches: 3\nGlitchCount: 4\n",
            "a.yaml:2:1: GlitchCount: unknown member `GlitchCount`, did you mean `glitchHold`?",
        );
        refused("glitchHold: soon\n", "a.yaml:1:13: ");
        refused("- 1\n", "a.yaml:1:1: ");
    }
}
