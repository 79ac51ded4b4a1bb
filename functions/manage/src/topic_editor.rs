//! Writes of topics, with the steps that follow them.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, AuditCaller, SettingsError, TopicSettings};
use posthaste_core::model::TopicName;
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, Ports};

use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::AuditTrail;
use crate::conditions::{WriteConditions, topic_etag};
use crate::editor_source::EditorSource;
use crate::health_changes::{HealthChanges, HealthWriter};
use crate::manage::Manage;
use crate::request_clock::work_ends;
use crate::topic_views::TopicViews;
use crate::topic_writer::TopicWriter;
use crate::write_follow_up::WriteFollowUp;

/// The editor of topics.
pub(crate) struct TopicEditor<P: Ports> {
    clock: P::Clock,
    editors: EditorSource<P>,
    writer: TopicWriter<P>,
    audit: AuditTrail<P>,
    follow_up: WriteFollowUp<P>,
    health: HealthWriter<P>,
    views: TopicViews<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for TopicEditor<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            editors: EditorSource::from_ref(manage),
            writer: TopicWriter::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
            follow_up: WriteFollowUp::from_ref(manage),
            health: HealthWriter::from_ref(manage),
            views: TopicViews::from_ref(manage),
        }
    }
}

impl<P: Ports> TopicEditor<P> {
    /// Creates or replaces a topic. Secrets that are made are shown.
    pub(crate) async fn put_topic(
        &self,
        caller: AuditCaller,
        topic: &TopicName,
        conditions: &WriteConditions,
        written: &TopicSettings,
    ) -> ApiResult<TopicSettings> {
        let editor = self.editors.new_editor();
        let until = work_ends(&self.clock);
        let named: Vec<_> = written.subscriptions.keys().collect();
        let entry = self.audit.new_entry(caller, AuditAction::PutTopic);
        let (record, (changes, is_new)) = self
            .writer
            .change_record(entry, topic, &named, |present| {
                conditions.check(present.as_ref().map(topic_etag).as_deref())?;
                let is_new = present.is_none();
                let mut record = present.unwrap_or_else(|| {
                    let keys = [editor.new_publish_key(), editor.new_publish_key()];
                    TopicRecord::new(topic.clone(), keys, editor.now)
                });
                let changes = editor.put_topic(topic, &mut record.settings, written)?;
                if let Some(keys) = &written.keys {
                    record.put_keys(keys).map_err(|error| bad_keys(&error))?;
                }
                Ok((record, (changes, is_new)))
            })
            .await?;
        tracing::info!(topic = %record.name, is_new, "topic written");
        let record = self
            .follow_up
            .follow_up_write(record, &changes, until)
            .await;
        let mut shown = self.views.shown_topic(&record);
        for change in &changes {
            if let Some(stored) = record.settings.subscriptions.get(&change.name) {
                shown.subscriptions.insert(
                    change.name.clone(),
                    change.response_view(stored, self.clock.now()),
                );
            }
        }
        Ok(JsonResponse::for_put(shown, topic_etag(&record), is_new))
    }

    /// Deletes a topic with its subscriptions, and forgets their health.
    pub(crate) async fn delete_topic(
        &self,
        caller: AuditCaller,
        topic: &TopicName,
        conditions: &WriteConditions,
    ) -> Result<(), ApiError> {
        let until = work_ends(&self.clock);
        let entry = self.audit.new_entry(caller, AuditAction::DeleteTopic);
        let deleted = self
            .writer
            .delete_record(entry, topic, |record| {
                conditions.check(record.map(topic_etag).as_deref())
            })
            .await?;
        let Some(record) = deleted else {
            return Ok(());
        };
        tracing::info!(topic = %record.name, "topic deleted");
        let mut health = HealthChanges::default();
        for (name, settings) in &record.settings.subscriptions {
            health.forget_subscription(&record.name, name, settings.endpoint.links());
        }
        self.health
            .apply_after_write(&record.name, &health, until)
            .await;
        Ok(())
    }
}

fn bad_keys(error: &SettingsError) -> ApiProblem {
    ApiProblem::new(ProblemKind::BadSettings)
        .member(error.member.as_str())
        .detail(error.problem.to_string())
}
