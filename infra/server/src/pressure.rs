//! Back pressure as a command line sets it: the profile, and over its defaults a file of keys under
//! Exchange's names (`core::pressure::ExchangeSettings`).

use std::path::Path;

use posthaste_cli::commands::read_input;
use posthaste_cli::error::CommandError;
use posthaste_cli::yaml::{FileMistakes, parse, rule_violation};
use posthaste_core::pressure::{ExchangeSettings, PressureSettings};

/// The settings of a profile, changed as the file says.
pub(super) fn read_settings(
    profile: PressureSettings,
    file: Option<&Path>,
) -> Result<PressureSettings, CommandError> {
    match file {
        Some(path) => Ok(parse_settings(path, &read_input(path)?, profile)?),
        None => Ok(profile),
    }
}

fn parse_settings(
    path: &Path,
    text: &[u8],
    settings: PressureSettings,
) -> Result<PressureSettings, FileMistakes> {
    let changes: ExchangeSettings = parse(path, text)?;
    let applied = changes.apply_to(settings);
    applied.map_err(|error| rule_violation(path, text, error.key(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::pressure::{Resource, ThresholdSettings};
    use posthaste_settings::table::PRESSURE_PROFILE;
    use std::time::Duration;

    /// The defaults of the two documents, written out in full: JSON is YAML.
    const PAGES: [(&str, &str); 2] = [
        (
            "exchange-2013",
            include_str!("../../../shared/core/src/pressure/exchange/fixtures/english.json"),
        ),
        (
            "exchange-2013-german",
            include_str!("../../../shared/core/src/pressure/exchange/fixtures/german.json"),
        ),
    ];

    fn of_profile(name: &str) -> PressureSettings {
        (PRESSURE_PROFILE.parse)(name).unwrap()
    }

    fn parse(text: &str) -> Result<PressureSettings, String> {
        let settings = of_profile("scaled");
        parse_settings(Path::new("a.yaml"), text.as_bytes(), settings)
            .map_err(|error| error.to_string())
    }

    fn refused(text: &str, expected: &str) {
        let message = parse(text).unwrap_err();
        assert!(message.starts_with(expected), "{message}");
    }

    #[test]
    fn a_file_is_read_as_the_document_writes_it() {
        let text = "# Louder than usual.\nSubmissionQueueHighThreshold: 20000\n\
                    ResourceMonitoringInterval: 00:00:00.500\nSMTPMaxThrottlingDelayInterval: PT1M\n\
                    DatabaseCheckPointDepthMax: 512 MB\nDehydrateMessagesUnderMemoryPressure: false\n";
        let settings = parse(text).unwrap();
        assert_eq!(
            settings.thresholds[&Resource::SubmissionQueue].high,
            Some(20_000)
        );
        assert_eq!(settings.interval, Duration::from_millis(500));
        assert_eq!(settings.tarpit.max, Duration::from_mins(1));
        assert_eq!(settings.disk.checkpoint_depth_bytes, 512 << 20);
        assert!(!settings.dehydrates_for_memory);
    }

    #[test]
    fn the_documents_own_sets_can_be_given_as_files() {
        for (profile, page) in PAGES {
            let settings =
                parse_settings(Path::new("page.json"), page.as_bytes(), of_profile(profile))
                    .unwrap();
            let [normal, medium, high] = if profile == "exchange-2013" {
                [1750, 2000, 2500]
            } else {
                [80, 120, 200]
            }
            .map(Some);
            let buckets = ThresholdSettings {
                normal,
                medium,
                high,
            };
            assert_eq!(settings.thresholds[&Resource::VersionBuckets], buckets);
        }
    }

    #[test]
    fn a_file_that_says_nothing_changes_nothing() {
        for text in ["{}", "# nothing yet\n", ""] {
            assert_eq!(parse(text), Ok(PressureSettings::default()), "{text:?}");
        }
    }

    #[test]
    fn an_error_names_the_file_the_line_and_the_key() {
        refused(
            "ResourceMonitoringInterval: 00:00:02\nSubmissionQueueHigh: 1\n",
            "a.yaml:2:1: SubmissionQueueHigh: unknown member `SubmissionQueueHigh`, did you mean `SubmissionQueueHighThreshold`?",
        );
        refused(
            "SubmissionQueueHighThreshold: many\n",
            "a.yaml:1:31: SubmissionQueueHighThreshold: expected a whole number, found a text",
        );
        refused(
            "# ours\nBatchPointItemExpiryInterval: 00:06:00\n",
            "a.yaml:2:31: BatchPointItemExpiryInterval is 360s; expected 00:05:00, as the documents have it, ",
        );
        refused(
            "BatchPointBatchSize: 40\nSubmissionQueueMediumThreshold: 1000\n",
            "a.yaml:2:33: SubmissionQueueMediumThreshold is 1000; \
             expected at least SubmissionQueueNormalThreshold, 2000",
        );
        refused("[1, 2]", "a.yaml:1:1: expected an object, found a list");
        refused("a: [", "a.yaml:1:");
    }
}
