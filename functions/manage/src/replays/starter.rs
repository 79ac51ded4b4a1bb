//! The begin of replays, and their dry runs.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{
    AuditAction, AuditCaller, ReplayPreview, ReplayReason, ReplayRequest, ReplayState, StatusState,
};
use posthaste_core::release::ReplaySelection;
use posthaste_core::stored::{LetterReceiver, ReplayRecord, TopicRecord, layout};
use posthaste_ports::{Clock, Entropy, Ports};
use serde_json::json;

use super::letter_preview::LetterPreview;
use super::log_preview::LogPreview;
use super::store::ReplayStore;
use crate::answer::{ApiError, unusable_record};
use crate::audit::AuditTrail;
use crate::extract::SubscriptionPath;
use crate::letters::bad_settings;
use crate::log_coverage::LogCoverage;
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// The problem of a replay from a log that is not written.
const LOG_IS_OFF: &str = "deliveryLog of the topic is off: there is nothing to replay from";

/// The answer to a request for a replay.
pub(crate) enum StartedReplay {
    /// The work that it would be.
    DryRun(ReplayPreview),
    /// The replay, or the one of the same selection that has not ended.
    Stored(Box<ReplayRecord>),
}

/// The start of replays.
pub(crate) struct ReplayStarter<P: Ports> {
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
    records: TopicRecords<P>,
    coverage: LogCoverage<P>,
    letter_preview: LetterPreview<P>,
    log_preview: LogPreview<P>,
    replays: ReplayStore<P>,
    audit: AuditTrail<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for ReplayStarter<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
            records: TopicRecords::from_ref(manage),
            coverage: LogCoverage::from_ref(manage),
            letter_preview: LetterPreview::from_ref(manage),
            log_preview: LogPreview::from_ref(manage),
            replays: ReplayStore::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
        }
    }
}

impl<P: Ports> ReplayStarter<P> {
    /// Starts the replay that is asked for, or counts what it would send.
    pub(crate) async fn start_replay(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
        request: ReplayRequest,
    ) -> Result<StartedReplay, ApiError> {
        let record = self.records.existing_record(&path.topic).await?;
        let (name, settings) = path.find_in(&record)?;
        let topic = &record.name;
        let now = self.clock.now();
        let request = request.with_fixed_times(now);
        let selection = ReplaySelection::new(topic, name, &request, now)
            .map_err(|error| bad_settings(&error))?;
        let created = record.identities_of(name);
        if selection.is_of_log() && self.coverage.is_off(Some(&record)) {
            let problem = ApiProblem::new(ProblemKind::BadSettings).member("source");
            return Err(problem.detail(LOG_IS_OFF).into());
        }
        if request.dry_run {
            let preview = self.preview_replay(path, &record, &selection).await?;
            return Ok(StartedReplay::DryRun(preview));
        }
        let id = layout::replay_id(now, &self.entropy.uuid().to_string());
        let entry = self.audit.new_entry(caller, AuditAction::BeginReplay);
        let entry = entry
            .of_subscription(topic, name)
            .of_target(&id)
            .with_detail(&json!(request).to_string());
        let mut replay =
            ReplayRecord::new(id, topic.clone(), (name.clone(), &created), request, now);
        if settings
            .status
            .as_ref()
            .is_some_and(|status| status.effective_at(now).state != StatusState::Active)
        {
            let reason = ReplayReason::SubscriptionNotActive;
            replay = replay.with_state(ReplayState::Waiting, Some(reason), now);
        }
        let (replay, is_new) = self
            .audit
            .run_audited(entry, self.replays.open_replay(replay), |entry, opened| {
                entry.of_target(&opened.0.id)
            })
            .await?;
        tracing::info!(
            replay_id = replay.id, %topic, subscription = %name, is_new, "a replay was asked for"
        );
        Ok(StartedReplay::Stored(Box::new(replay)))
    }

    /// Counts what a replay would send now.
    async fn preview_replay(
        &self,
        path: &SubscriptionPath,
        record: &TopicRecord,
        selection: &ReplaySelection,
    ) -> Result<ReplayPreview, ApiError> {
        if selection.is_of_log() {
            let topic = record.compile().map_err(|_| unusable_record())?;
            let to = topic
                .find_subscription(&path.name)
                .ok_or_else(|| path.unknown_problem())?;
            return self.log_preview.count_records(selection, to).await;
        }
        let (name, settings) = path.find_in(record)?;
        let receiver = LetterReceiver::of_subscription(record, name, settings);
        self.letter_preview
            .count_letters(selection, &receiver)
            .await
    }
}
