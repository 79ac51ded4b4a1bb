//! Checks of a write as a whole, beside those of each setting.

use std::collections::BTreeSet;

use crate::api::problem::{ApiProblem, ProblemKind};
use crate::api::{
    EndpointSettings, IsoTimestamp, RoomRemedy, RotationError, SettingsError, TopicSettings,
    compile_topic,
};
use crate::model::{EndpointUrl, Secret, SubscriptionName, Timestamp, TopicKeys, TopicName};

/// Requires that the name in the body, if there is one, is the one in the path, in any case.
pub(super) fn require_same_name(written: Option<&str>, path: &str) -> Result<(), ApiProblem> {
    match written {
        Some(written) if !written.eq_ignore_ascii_case(path) => Err(bad_setting(
            "name",
            format!("differs from the name in the path, {path:?}"),
        )),
        Some(_) | None => Ok(()),
    }
}

/// Requires that no two subscriptions have one name in different cases.
pub(super) fn require_distinct(written: &TopicSettings) -> Result<(), ApiProblem> {
    let mut seen = BTreeSet::new();
    match written
        .subscriptions
        .keys()
        .find(|name| !seen.insert(name.folded()))
    {
        None => Ok(()),
        Some(name) => {
            let member = format!("subscriptions.{name}");
            Err(bad_setting(
                member,
                "there is another of this name in another case",
            ))
        }
    }
}

/// The problem of a subscription, as that of its topic.
pub(super) fn within_subscription(name: &SubscriptionName, problem: ApiProblem) -> ApiProblem {
    let member = problem.member.as_deref().unwrap_or_default();
    let member = format!("subscriptions.{name}.{member}");
    problem.member(member)
}

/// Requires that a subscription's end is in the future.
pub(super) fn check_expiration(
    written: Option<IsoTimestamp>,
    now: Timestamp,
) -> Result<(), ApiProblem> {
    match written {
        Some(IsoTimestamp(ends_at)) if ends_at <= now => Err(bad_setting(
            "expirationTimeUtc",
            format!("{ends_at} is not in the future"),
        )),
        Some(_) | None => Ok(()),
    }
}

/// The URL of an endpoint, as it may be written.
pub(super) fn written_url(member: &str, url: &str) -> Result<EndpointUrl, ApiProblem> {
    EndpointUrl::parse_written(url).map_err(|error| bad_setting(member, error.to_string()))
}

/// The endpoint with the normal forms of its URLs, which are where its requests go.
pub(super) fn normal_endpoint(written: &EndpointSettings) -> Result<EndpointSettings, ApiProblem> {
    let fallback = written.fallback_url.as_deref();
    Ok(EndpointSettings {
        url: normal_url("endpoint.url", &written.url)?,
        fallback_url: fallback
            .map(|url| normal_url("endpoint.fallbackUrl", url))
            .transpose()?,
        ..written.clone()
    })
}

fn normal_url(member: &str, url: &str) -> Result<String, ApiProblem> {
    Ok(written_url(member, url)?.as_str().to_owned())
}

/// Checks the topic as a whole. Settings are not at fault by themselves where a subscription that
/// was not written cannot accept them.
pub(super) fn check_compiled_topic<'a>(
    topic: &TopicName,
    settings: &TopicSettings,
    written: impl IntoIterator<Item = &'a SubscriptionName>,
) -> Result<(), ApiProblem> {
    // The keys of the topic do not matter here.
    let keys = TopicKeys::new(Secret::new(""), Secret::new(""));
    let Err(error) = compile_topic(topic, settings, keys) else {
        return Ok(());
    };
    let problem = bad_settings(&error);
    let subscription = error
        .member
        .strip_prefix("subscriptions.")
        .and_then(|rest| rest.split('.').next());
    match subscription {
        Some(name) if !written.into_iter().any(|written| written.as_str() == name) => {
            let kind = ProblemKind::Incompatible;
            Err(ApiProblem { kind, ..problem }.status(kind.status()))
        }
        Some(_) | None => Err(problem),
    }
}

/// The problem of settings that do not compile.
pub(super) fn bad_settings(error: &SettingsError) -> ApiProblem {
    bad_setting(error.member.as_str(), error.problem.to_string())
}

/// The problem of one member.
pub(super) fn bad_setting(member: impl Into<String>, detail: impl Into<String>) -> ApiProblem {
    ApiProblem::new(ProblemKind::BadSettings)
        .member(member)
        .detail(detail)
}

/// The problem of a secret that cannot be rotated.
pub(super) fn rotation_problem(error: &RotationError) -> ApiProblem {
    let problem = match error {
        RotationError::Overlap(_) => ApiProblem::new(ProblemKind::BadSettings).member("overlap"),
        RotationError::Full {
            way_out: RoomRemedy::Drop,
            ..
        } => ApiProblem::new(ProblemKind::Incompatible).member("drop"),
        RotationError::Full { .. } => ApiProblem::new(ProblemKind::Incompatible),
    };
    problem.detail(error.to_string())
}
