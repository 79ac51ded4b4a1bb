//! `doctor`: checks an installation from outside, by what this program sees of it, and from inside,
//! by what the server says of itself.

mod outside;
mod shown;

use std::time::Duration;

use posthaste_core::api::doctor::{CheckResult, CheckView, DoctorView};
use ureq::http::Method;

use self::outside::{Outside, look_from_outside, version_check};
use self::shown::reply;
use super::session::Session;
use crate::cli::{AdminKey, Global};
use crate::client::{Client, ClientError};
use crate::error::{CommandError, Failure};
use crate::output::Reply;

/// Longest wait for the checks from inside: the server takes 25 s for them at most.
const INSIDE_TIMEOUT: Duration = Duration::from_secs(40);

/// Error of an installation that is not well.
#[derive(Debug, thiserror::Error)]
#[error("{failed} of {all} checks failed")]
struct NotWell {
    failed: usize,
    all: usize,
}

impl Failure for NotWell {}

pub(crate) fn run(
    global: &Global,
    admin: &AdminKey,
    endpoints: bool,
) -> Result<Reply, CommandError> {
    let authorities = global.ca_cert.as_deref();
    let client = Client::with_authorities(&global.url, authorities)?;
    let Outside {
        mut checks,
        is_reached,
        version,
    } = look_from_outside(&client, authorities);
    let session = Session::open(global, admin.key.as_deref());
    let inside = look_from_inside(session, is_reached, endpoints);
    let version = version.or(inside.version);
    if is_reached {
        checks.push(version_check(client.base().as_str(), version.as_deref()));
    }
    checks.extend(inside.checks);
    judged(&checks)
}

/// The reply, which is an error as well where a check failed.
fn judged(checks: &[CheckView]) -> Result<Reply, CommandError> {
    let all = checks.len();
    let failed = checks.iter();
    let failed = failed.filter(|it| it.result == CheckResult::Failed).count();
    let reply = reply(checks);
    if failed == 0 {
        return Ok(reply);
    }
    Err(CommandError::from(NotWell { failed, all }).after(reply))
}

/// What the server says of itself.
struct Inside {
    checks: Vec<CheckView>,
    version: Option<String>,
}

fn look_from_inside(
    session: Result<Session, CommandError>,
    is_reached: bool,
    endpoints: bool,
) -> Inside {
    let alone = |check| Inside {
        checks: vec![check],
        version: None,
    };
    let session = match session {
        Ok(session) => session,
        Err(error) => return alone(failed("key", "the admin key", &error)),
    };
    let of = session.client.base().to_string();
    if !is_reached {
        let check = CheckView::passed("installation", of, "not looked at from inside");
        return alone(check.with_result(CheckResult::Unknown, "mend the check `server` first"));
    }
    let call = session.call(Method::GET, &["doctor"]);
    let call = call.query("endpoints", endpoints.then_some(true));
    match session.client.json(call.timeout(INSIDE_TIMEOUT)) {
        Ok(DoctorView { version, checks }) => {
            let key = CheckView::passed("key", "the admin key", "accepted");
            Inside {
                checks: std::iter::once(key).chain(checks).collect(),
                version: Some(version),
            }
        }
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => {
            let found = "the server does not check itself: it is older than this program";
            let advice = "ask again once it is upgraded; `posthaste pressure` and `links` work";
            alone(
                CheckView::passed("installation", of, found)
                    .with_result(CheckResult::Unknown, advice),
            )
        }
        Err(error) => {
            let is_of_key =
                matches!(&error, ClientError::Refused(it) if matches!(it.status, 401 | 403));
            let error = CommandError::from(error);
            alone(if is_of_key {
                failed("key", "the admin key", &error)
            } else {
                failed("installation", &of, &error)
            })
        }
    }
}

/// The check that met this error.
fn failed(check: &str, of: &str, error: &CommandError) -> CheckView {
    let advice = error.hint();
    let advice = advice.unwrap_or_else(|| "look at the server's log".to_owned());
    CheckView::passed(check, of, error.line()).with_result(CheckResult::Failed, advice)
}
