//! One check and its result.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckResult {
    /// All is well.
    Ok,
    /// It works, and will not for long, or not under load.
    Warning,
    /// It does not work.
    Failed,
    /// The check could not be made. That is not good news.
    Unknown,
}

impl CheckResult {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// One check of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckView {
    /// The name of the check.
    #[schema(example = "disk")]
    pub check: String,
    /// What was looked at.
    #[schema(example = "/var/lib/posthaste")]
    pub of: String,
    /// The result.
    pub result: CheckResult,
    /// What was found.
    #[schema(example = "61 % used, 8.1 GiB free")]
    pub found: String,
    /// What to do. Left out where all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The checks that an installation made of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoctorView {
    /// The version of the server.
    #[schema(example = "0.2.0")]
    pub version: String,
    /// The checks, those of endpoints last.
    pub checks: Vec<CheckView>,
}

impl CheckView {
    /// A check that found all well.
    pub fn passed(check: &str, of: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            of: of.into(),
            result: CheckResult::Ok,
            found: found.into(),
            advice: None,
        }
    }

    /// The same check with another result, and what to do about it.
    #[must_use]
    pub fn with_result(self, result: CheckResult, advice: impl Into<String>) -> Self {
        Self {
            result,
            advice: Some(advice.into()),
            ..self
        }
    }
}

/// The numbers of the results in one line: `3 ok, 1 failed`. Results that no check has are left
/// out.
pub fn summarize_results(checks: &[CheckView]) -> String {
    let results = [
        CheckResult::Ok,
        CheckResult::Warning,
        CheckResult::Failed,
        CheckResult::Unknown,
    ];
    let mut parts = Vec::new();
    for result in results {
        let count = checks.iter().filter(|it| it.result == result).count();
        if count > 0 {
            parts.push(format!("{count} {}", result.as_str()));
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_each_result_that_there_is() {
        let ok = || CheckView::passed("disk", "/data", "61 % used");
        let all = [
            ok(),
            ok().with_result(CheckResult::Unknown, "look again"),
            ok(),
            ok().with_result(CheckResult::Failed, "free space"),
            ok().with_result(CheckResult::Warning, "free space soon"),
        ];
        assert_eq!(
            summarize_results(&all),
            "2 ok, 1 warning, 1 failed, 1 unknown"
        );
        assert_eq!(summarize_results(&all[..1]), "1 ok");
        assert_eq!(summarize_results(&[]), "");
    }

    #[test]
    fn a_check_is_json_with_advice_only_where_there_is_some() {
        let ok = CheckView::passed("disk", "/data", "61 % used");
        let json = serde_json::json!(ok);
        let expected = serde_json::json!({
            "check": "disk", "of": "/data", "result": "ok", "found": "61 % used",
        });
        assert_eq!(json, expected);
        let failed = ok.with_result(CheckResult::Failed, "free space");
        let json = serde_json::json!(failed);
        assert_eq!(
            (&json["result"], &json["advice"]),
            (&"failed".into(), &"free space".into())
        );
        assert_eq!(serde_json::from_value::<CheckView>(json).unwrap(), failed);
    }
}
