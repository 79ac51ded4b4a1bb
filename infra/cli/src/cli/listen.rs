//! The command line of `listen`.

use std::time::Duration;

use clap::Args;
use http::StatusCode;
use posthaste_core::model::time::parse_duration;

/// `listen`.
#[derive(Debug, Args)]
pub struct ListenArgs {
    /// The port on 127.0.0.1. 0 takes a free one, and the first line names it.
    #[arg(long, value_name = "PORT", default_value_t = 9000)]
    pub port: u16,
    /// A signing secret of the subscription, which begins with whsec_ or whsk_. May be given more
    /// than once, as during a rotation. Without one, no signature is verified.
    #[arg(
        long = "secret",
        value_name = "SECRET",
        env = "POSTHASTE_SECRET",
        hide_env_values = true
    )]
    pub secrets: Vec<String>,
    /// The status of every answer. A request whose signature is wrong is answered 401.
    #[arg(long, value_name = "STATUS", default_value = "200", value_parser = parse_status)]
    pub answer: StatusCode,
    /// The time before each answer, such as 2s or 500ms.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub delay: Duration,
}

/// Parses a final status. A 1xx is no answer.
fn parse_status(text: &str) -> Result<StatusCode, String> {
    let status = text
        .parse()
        .ok()
        .filter(|it: &StatusCode| (200..=599).contains(&it.as_u16()));
    status.ok_or_else(|| "expected a status from 200 to 599".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_final_status() {
        assert_eq!(parse_status("503"), Ok(StatusCode::SERVICE_UNAVAILABLE));
        assert!(
            ["100", "600", "OK", ""]
                .iter()
                .all(|text| parse_status(text).is_err())
        );
    }
}
