//! `doctor`: checks an installation from outside, by what this program sees of it, and from inside,
//! by what the server says of itself.

mod outside;
mod shown;

use std::time::Duration;

use posthaste_core::api::doctor::{CheckResult, CheckView, DoctorView};
use ureq::http::Method;

use self::outside::{OutsideChecks, check_from_outside, version_check};
use self::shown::checks_reply;
use super::session::AdminSession;
use crate::cli::{AdminKey, GlobalOptions};
use crate::client::{ClientError, ServerClient};
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

/// Longest wait for the checks from inside: the server takes 25 s for them at most.
const INSIDE_TIMEOUT: Duration = Duration::from_secs(40);

/// Error of an installation that is not well.
#[derive(Debug, thiserror::Error)]
#[error("{failed} of {all} checks failed")]
struct ChecksFailed {
    failed: usize,
    all: usize,
}

impl CommandFailure for ChecksFailed {}

pub fn run(
    global: &GlobalOptions,
    admin: &AdminKey,
    endpoints: bool,
) -> Result<CommandReply, CommandError> {
    let authorities = global.ca_cert.as_deref();
    let client = ServerClient::with_authorities(&global.url, authorities)?;
    let OutsideChecks {
        mut checks,
        is_reached,
        version,
    } = check_from_outside(&client, authorities);
    let session = AdminSession::open(global, admin.key.as_deref());
    let inside = check_from_inside(session, is_reached, endpoints);
    let version = version.or(inside.version);
    if is_reached {
        checks.push(version_check(
            client.base_url().as_str(),
            version.as_deref(),
        ));
    }
    checks.extend(inside.checks);
    reply_or_failure(&checks)
}

/// The reply, which is an error as well where a check failed.
fn reply_or_failure(checks: &[CheckView]) -> Result<CommandReply, CommandError> {
    let all = checks.len();
    let failed = checks.iter();
    let failed = failed.filter(|it| it.result == CheckResult::Failed).count();
    let reply = checks_reply(checks);
    if failed == 0 {
        return Ok(reply);
    }
    Err(CommandError::from(ChecksFailed { failed, all }).with_done(reply))
}

/// The checks and the version that the server gives of itself.
struct InsideChecks {
    checks: Vec<CheckView>,
    version: Option<String>,
}

impl InsideChecks {
    fn with_one(check: CheckView) -> Self {
        Self {
            checks: vec![check],
            version: None,
        }
    }
}

fn check_from_inside(
    session: Result<AdminSession, CommandError>,
    is_reached: bool,
    endpoints: bool,
) -> InsideChecks {
    let session = match session {
        Ok(session) => session,
        Err(error) => return InsideChecks::with_one(failed_check("key", "the admin key", &error)),
    };
    let of = session.client.base_url().to_string();
    if !is_reached {
        let check = CheckView::passed("installation", of, "not looked at from inside");
        return InsideChecks::with_one(
            check.with_result(CheckResult::Unknown, "mend the check `server` first"),
        );
    }
    let call = session.call(Method::GET, &["doctor"]);
    let call = call.query("endpoints", endpoints.then_some(true));
    match session.client.send_for_json(call.timeout(INSIDE_TIMEOUT)) {
        Ok(DoctorView { version, checks }) => {
            let key = CheckView::passed("key", "the admin key", "accepted");
            InsideChecks {
                checks: std::iter::once(key).chain(checks).collect(),
                version: Some(version),
            }
        }
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => {
            let found = "the server does not check itself: it is older than this program";
            let advice = "ask again once it is upgraded; `posthaste pressure` and `links` work";
            InsideChecks::with_one(
                CheckView::passed("installation", of, found)
                    .with_result(CheckResult::Unknown, advice),
            )
        }
        Err(error) => {
            let is_of_key =
                matches!(&error, ClientError::Refused(it) if matches!(it.status, 401 | 403));
            let error = CommandError::from(error);
            InsideChecks::with_one(if is_of_key {
                failed_check("key", "the admin key", &error)
            } else {
                failed_check("installation", &of, &error)
            })
        }
    }
}

/// The check that met this error.
fn failed_check(check: &str, of: &str, error: &CommandError) -> CheckView {
    let advice = error.hint();
    let advice = advice.unwrap_or_else(|| "look at the server's log".to_owned());
    CheckView::passed(check, of, error.to_line()).with_result(CheckResult::Failed, advice)
}
