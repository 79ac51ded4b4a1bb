//! Writes of the publish keys of topics.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, AuditCaller, KeyName, TopicKeysView};
use posthaste_core::model::TopicName;
use posthaste_ports::Ports;

use crate::answer::ApiError;
use crate::audit::AuditTrail;
use crate::editor_source::EditorSource;
use crate::manage::Manage;
use crate::topic_writer::TopicWriter;

/// The editor of publish keys.
pub(crate) struct KeyEditor<P: Ports> {
    editors: EditorSource<P>,
    writer: TopicWriter<P>,
    audit: AuditTrail<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for KeyEditor<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            editors: EditorSource::from_ref(manage),
            writer: TopicWriter::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
        }
    }
}

impl<P: Ports> KeyEditor<P> {
    /// Makes or replaces a key, and returns all keys of the topic.
    pub(crate) async fn regenerate_key(
        &self,
        caller: AuditCaller,
        topic: &TopicName,
        key: KeyName,
    ) -> Result<TopicKeysView, ApiError> {
        let editor = self.editors.new_editor();
        let entry = self.audit.new_entry(caller, AuditAction::RegenerateKey);
        let entry = entry.of_target(&key.to_string());
        let (record, ()) = self
            .writer
            .change_existing(entry, topic, &[], |record| {
                record.set_key(key, editor.new_publish_key());
                Ok(())
            })
            .await?;
        tracing::info!(topic = %record.name, publish_key = %key, "publish key replaced");
        Ok(record.shown_keys())
    }

    /// Removes a key of another tier.
    pub(crate) async fn delete_key(
        &self,
        caller: AuditCaller,
        topic: &TopicName,
        key: KeyName,
    ) -> Result<(), ApiError> {
        let entry = self.audit.new_entry(caller, AuditAction::DeleteKey);
        let entry = entry.of_target(&key.to_string());
        let (record, ()) = self
            .writer
            .change_existing(entry, topic, &[], |record| match record.remove_key(key) {
                Some(true) => Ok(()),
                Some(false) => Err(unknown_key(topic, key)),
                None => Err(permanent_key_problem(key)),
            })
            .await?;
        tracing::info!(topic = %record.name, publish_key = %key, "publish key removed");
        Ok(())
    }
}

fn unknown_key(topic: &TopicName, key: KeyName) -> ApiProblem {
    ApiProblem::new(ProblemKind::NotFound).detail(format!("the topic {topic} has no {key}"))
}

fn permanent_key_problem(key: KeyName) -> ApiProblem {
    let detail = format!("every topic has a {key}: it can be replaced, not taken away");
    ApiProblem::new(ProblemKind::BadRequest)
        .member("key")
        .detail(detail)
}
