//! The checks as they are shown: a line each, and one for what to do.

use posthaste_core::api::doctor::{CheckResult, CheckView, summarize_results};
use serde_json::json;

use crate::output::CommandReply;

/// Columns of the longest result, and of the longest name of a check.
const RESULT_COLUMNS: usize = CheckResult::Warning.as_str().len();
const CHECK_COLUMNS: usize = "installation".len();

/// The reply: a line for each check, and a summary.
pub(super) fn checks_reply(checks: &[CheckView]) -> CommandReply {
    let reply = CommandReply::new(json!({ "checks": checks }));
    let reply = checks.iter().fold(reply, |reply, check| {
        let reply = reply.line(check_line(check));
        match &check.advice {
            Some(advice) => reply.line(format!("{:RESULT_COLUMNS$}  try: {advice}", "")),
            None => reply,
        }
    });
    reply.line(summarize_results(checks))
}

fn check_line(check: &CheckView) -> String {
    let result = check.result.as_str();
    let name = &check.check;
    format!(
        "{result:RESULT_COLUMNS$}  {name:CHECK_COLUMNS$}  {}: {}",
        check.of, check.found
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputStyle;

    #[test]
    fn each_check_has_a_line_and_its_advice_another() {
        let reply = checks_reply(&[
            CheckView::passed("server", "http://127.0.0.1:8080", "answers in 1 ms"),
            CheckView::passed("disk", "/data", "99 % used")
                .with_result(CheckResult::Failed, "free space"),
        ]);
        let expected = "\
ok       server        http://127.0.0.1:8080: answers in 1 ms
failed   disk          /data: 99 % used
         try: free space
1 ok, 1 failed
";
        assert_eq!(reply.render(OutputStyle::Plain).into_string(), expected);
        let json = reply.render(OutputStyle::Json).into_string();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["checks"][1]["advice"], "free space");
    }
}
