//! Rotating a subscription's signing secret: a new one is made and signs first, the old ones go on for a while.

use std::time::Duration;

use axum::extract::State;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{RotateSecret, RotatedSecret, RotationError, SecretText, SubscriptionSettings};
use posthaste_core::attempt::signature::{SignatureKind, SigningSecret};
use posthaste_core::stored::topic::TopicRecord;
use posthaste_ports::{Clock, Entropy};

use crate::answer::{Failure, Shown};
use crate::conditions::{Conditions, subscription_etag};
use crate::document::{BadRequests, BadWrites, FullOfSecrets, Problems, UnknownSubscription};
use crate::edit::{Editor, spelling};
use crate::input::{At, MaybeWritten, SubscriptionPath};
use crate::records::unknown_topic;
use crate::subscriptions::unknown_subscription;
use crate::{Managed, Store, Webhooks};

/// Rotate a subscription's signing secret
///
/// Makes a new secret, which is shown in this answer and never again. It signs first from now on; the present secrets
/// of the same kind go on signing until the overlap ends, and then vanish by themselves. Secrets of the other kind
/// stay. The body may be left out.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/rotate-secret", tag = "subscriptions",
    params(SubscriptionPath,
        ("If-Match" = Option<String>, Header, description = "Rotate only if this is its version")),
    request_body(content = Option<RotateSecret>, content_type = "application/json"),
    responses((status = 200, description = "Rotated: the new secret, in clear", body = RotatedSecret,
            headers(("ETag" = String, description = "The subscription's version, for If-Match"))),
        BadRequests, UnknownSubscription, BadWrites, FullOfSecrets, Problems))]
pub(crate) async fn rotate_secret<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<SubscriptionPath>,
    conditions: Conditions,
    MaybeWritten(written): MaybeWritten<RotateSecret>,
) -> Result<Shown<RotatedSecret>, Failure> {
    let editor = manage.editor();
    let edit = |present: Option<TopicRecord>| {
        let mut record = present.ok_or_else(|| unknown_topic(&path.topic))?;
        let name = spelling(&record.settings, &path.name).ok_or_else(|| unknown_subscription(&path))?.clone();
        conditions.check(Some(&subscription_etag(&record, &record.settings.subscriptions[&name])))?;
        let settings =
            record.settings.subscriptions.get_mut(&name).ok_or_else(|| unknown_subscription(&path))?;
        let made = editor.rotate(settings, &written)?;
        Ok((record, (name, made)))
    };
    let (record, (name, made)) = manage.change(&path.topic, edit).await?;
    let settings = &record.settings.subscriptions[&name];
    let body = rotated(settings, made);
    tracing::info!(topic = %record.name, subscription = %name, kind = ?body.kind, "signing secret rotated");
    Ok(Shown::versioned(body, subscription_etag(&record, settings)))
}

impl<E: Entropy> Editor<'_, E> {
    /// Rotates the secret of a subscription and answers the new one.
    fn rotate(
        &self,
        settings: &mut SubscriptionSettings,
        written: &RotateSecret,
    ) -> Result<SecretText, Problem> {
        let made = self.secret(settings.signing.kind_to_make(written.kind));
        let overlap: Option<Duration> = written.overlap.map(|overlap| overlap.0);
        let next = settings.signing.rotated(made.clone(), overlap, self.now);
        settings.signing = next.map_err(|error| problem(&error))?;
        Ok(made)
    }
}

fn rotated(settings: &SubscriptionSettings, made: SecretText) -> RotatedSecret {
    let public_key = SigningSecret::parse(made.expose()).ok().and_then(|secret| secret.public_key());
    RotatedSecret {
        kind: SignatureKind::of(made.expose()),
        public_key: public_key.map(|key| key.to_string()),
        signing: settings.signing.shown(),
        secret: made,
    }
}

fn problem(error: &RotationError) -> Problem {
    let problem = match error {
        RotationError::Overlap(_) => Problem::new(ProblemKind::BadSettings).member("overlap"),
        RotationError::Full { .. } => Problem::new(ProblemKind::Incompatible),
    };
    problem.detail(error.to_string())
}
