//! Actions of operators on a subscription, such as pause and force.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::handshake::status_after_action;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{
    AuditAction, AuditCaller, ForcedView, LinkView, NewHandshake, SecretText, StatusState,
    SubscriptionAction, SubscriptionSettings,
};
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, Ports};

use crate::answer::{ApiResult, JsonResponse};
use crate::audit::AuditTrail;
use crate::conditions::{WriteConditions, subscription_etag};
use crate::editor_source::EditorSource;
use crate::extract::SubscriptionPath;
use crate::force_requests::ForceRequests;
use crate::handshakes::HandshakeRunner;
use crate::health_changes::{HealthChanges, HealthWriter};
use crate::manage::Manage;
use crate::request_clock::work_ends;
use crate::topic_records::TopicRecords;
use crate::topic_writer::TopicWriter;

/// The outlook on events that wait.
const WHAT_NOW: &str = "what is held or parked for it begins to go out within a minute, the oldest first and \
    little by little at first; retries that are already in the queue go out within 15 minutes";

/// The actions of operators on subscriptions.
pub(crate) struct SubscriptionActions<P: Ports> {
    clock: P::Clock,
    editors: EditorSource<P>,
    records: TopicRecords<P>,
    writer: TopicWriter<P>,
    audit: AuditTrail<P>,
    health: HealthWriter<P>,
    handshakes: HandshakeRunner<P>,
    forced: ForceRequests<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for SubscriptionActions<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            editors: EditorSource::from_ref(manage),
            records: TopicRecords::from_ref(manage),
            writer: TopicWriter::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
            health: HealthWriter::from_ref(manage),
            handshakes: HandshakeRunner::from_ref(manage),
            forced: ForceRequests::from_ref(manage),
        }
    }
}

impl<P: Ports> SubscriptionActions<P> {
    /// Acts on a subscription, and asks its endpoint where the action needs that.
    pub(crate) async fn act(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
        action: SubscriptionAction,
    ) -> ApiResult<SubscriptionSettings> {
        let editor = self.editors.new_editor();
        let until = work_ends(&self.clock);
        let entry = self.audit.new_entry(caller, action.into());
        let unconditional = WriteConditions::default();
        let (record, name, handshake) = self
            .writer
            .change_subscription(entry, path, &unconditional, |name, settings| {
                editor.apply_action(action, name, settings)
            })
            .await?;
        let written_at = self.clock.monotonic();
        let word = action.as_str();
        tracing::info!(topic = %record.name, subscription = %name, action = word, "subscription acted on");
        match action {
            // The operator wants deliveries now: a hold would delay them.
            SubscriptionAction::Resume | SubscriptionAction::Enable => {
                let health = HealthChanges::to_force(&record, [&name]).unwrap_or_default();
                self.health
                    .apply_after_write(&record.name, &health, until)
                    .await;
            }
            SubscriptionAction::Disable
            | SubscriptionAction::Validate
            | SubscriptionAction::Pause
            | SubscriptionAction::Force => {}
        }
        let ends = self.handshakes.handshake_ends(until);
        let record = self
            .handshakes
            .shake_hands(record, handshake.into_iter().collect(), ends, written_at)
            .await?;
        let settings = record
            .settings
            .subscriptions
            .get(&name)
            .ok_or_else(|| path.unknown_problem())?;
        let shown = settings.to_view(&name, self.clock.now());
        Ok(JsonResponse::with_etag(
            shown,
            subscription_etag(&record, settings),
        ))
    }

    /// Ends the holds that are in a subscription's way.
    pub(crate) async fn force(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
    ) -> ApiResult<ForcedView> {
        let record = self.records.existing_record(&path.topic).await?;
        let (name, settings) = path.find_in(&record)?;
        require_active(settings, self.clock.now())?;
        let changes = HealthChanges::to_force(&record, [name])?;
        let entry = self.audit.new_entry(caller, AuditAction::Force);
        let entry = entry.of_subscription(&path.topic, &path.name);
        let force = async {
            // First, so that wake ends the holds if this process cannot.
            let id = self.forced.request_force(&record, name).await?;
            Ok((id, self.health.apply_changes(&changes).await?))
        };
        let (id, forced) = self
            .audit
            .run_audited(entry, force, |entry, (_, forced)| {
                entry.with_detail(&format!("{} holds ended", forced.len()))
            })
            .await?;
        tracing::info!(
            topic = %record.name, subscription = %name, action = SubscriptionAction::Force.as_str(),
            holds_ended = forced.len(), "subscription acted on"
        );
        Ok(JsonResponse::new(ForcedView {
            id,
            topic: record.name.clone(),
            subscription: name.clone(),
            detail: forced_detail(&forced),
            forced,
        }))
    }
}

fn require_active(settings: &SubscriptionSettings, now: Timestamp) -> Result<(), ApiProblem> {
    // Force begins no handshake, so its code is never used.
    let code = &SecretText::new("");
    status_after_action(
        SubscriptionAction::Force,
        settings,
        NewHandshake { now, code },
    )
    .map(drop)
    .map_err(|wrong| {
        let state = settings
            .status
            .as_ref()
            .map(|status| status.effective_at(now).state);
        ApiProblem::new(ProblemKind::WrongState)
            .detail(format!("{wrong}{}", advice_for_state(state)))
    })
}

/// The advice for a subscription in this state.
fn advice_for_state(state: Option<StatusState>) -> &'static str {
    match state {
        Some(StatusState::Paused) => "; resume it, which forces as well",
        Some(StatusState::Disabled | StatusState::Failed) => "; enable it, which forces as well",
        Some(StatusState::Pending) => "; its endpoint has yet to consent",
        Some(StatusState::Active) | None => "",
    }
}

fn forced_detail(forced: &[LinkView]) -> String {
    match forced {
        [] => format!("no hold was in its way; {WHAT_NOW}"),
        [_] => format!("the hold has ended; {WHAT_NOW}"),
        more => format!("{} holds have ended; {WHAT_NOW}", more.len()),
    }
}
