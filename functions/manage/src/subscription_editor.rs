//! Writes of subscriptions, with the steps that follow them.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::{
    AuditAction, AuditCaller, RotateSecret, RotatedSecret, SubscriptionSettings,
};
use posthaste_ports::{Clock, Ports};

use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::AuditTrail;
use crate::conditions::{WriteConditions, subscription_etag};
use crate::editor_source::EditorSource;
use crate::extract::SubscriptionPath;
use crate::health_changes::{HealthChanges, HealthWriter};
use crate::manage::Manage;
use crate::request_clock::work_ends;
use crate::topic_writer::TopicWriter;
use crate::write_follow_up::WriteFollowUp;

/// The editor of subscriptions.
pub(crate) struct SubscriptionEditor<P: Ports> {
    clock: P::Clock,
    editors: EditorSource<P>,
    writer: TopicWriter<P>,
    audit: AuditTrail<P>,
    follow_up: WriteFollowUp<P>,
    health: HealthWriter<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for SubscriptionEditor<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            editors: EditorSource::from_ref(manage),
            writer: TopicWriter::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
            follow_up: WriteFollowUp::from_ref(manage),
            health: HealthWriter::from_ref(manage),
        }
    }
}

impl<P: Ports> SubscriptionEditor<P> {
    /// Creates or replaces a subscription. A secret that is made is shown.
    pub(crate) async fn put_subscription(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
        conditions: &WriteConditions,
        written: &SubscriptionSettings,
    ) -> ApiResult<SubscriptionSettings> {
        let editor = self.editors.new_editor();
        let until = work_ends(&self.clock);
        let entry = self.audit.new_entry(caller, AuditAction::PutSubscription);
        let entry = entry.of_subscription(&path.topic, &path.name);
        let (record, change) = self
            .writer
            .change_existing(entry, &path.topic, &[&path.name], |record| {
                let present = record.settings.find_subscription(&path.name);
                let version = present.map(|(_, settings)| subscription_etag(record, settings));
                conditions.check(version.as_deref())?;
                editor.put_subscription(&record.name, &mut record.settings, &path.name, written)
            })
            .await?;
        tracing::info!(
            topic = %record.name, subscription = %change.name, is_new = change.is_new, "subscription written"
        );
        let record = self
            .follow_up
            .follow_up_write(record, std::slice::from_ref(&change), until)
            .await;
        let settings = record
            .settings
            .subscriptions
            .get(&change.name)
            .ok_or_else(|| path.unknown_problem())?;
        let shown = change.response_view(settings, self.clock.now());
        Ok(JsonResponse::for_put(
            shown,
            subscription_etag(&record, settings),
            change.is_new,
        ))
    }

    /// Deletes a subscription, and forgets its health.
    pub(crate) async fn delete_subscription(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
        conditions: &WriteConditions,
    ) -> Result<(), ApiError> {
        let until = work_ends(&self.clock);
        let entry = self
            .audit
            .new_entry(caller, AuditAction::DeleteSubscription);
        let entry = entry.of_subscription(&path.topic, &path.name);
        let (record, (name, removed)) = self
            .writer
            .change_existing(entry, &path.topic, &[], |record| {
                let (name, settings) = path.find_in(record)?;
                conditions.check(Some(&subscription_etag(record, settings)))?;
                let name = name.clone();
                let removed = record.settings.subscriptions.remove(&name);
                Ok((name, removed))
            })
            .await?;
        tracing::info!(topic = %record.name, subscription = %name, "subscription deleted");
        let mut health = HealthChanges::default();
        health.forget_subscription(
            &record.name,
            &name,
            removed
                .iter()
                .flat_map(|settings| settings.endpoint.links()),
        );
        self.health
            .apply_after_write(&record.name, &health, until)
            .await;
        Ok(())
    }

    /// Rotates the signing secret of a subscription. The new one is shown.
    pub(crate) async fn rotate_secret(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
        conditions: &WriteConditions,
        written: &RotateSecret,
    ) -> ApiResult<RotatedSecret> {
        let editor = self.editors.new_editor();
        let entry = self.audit.new_entry(caller, AuditAction::RotateSecret);
        let (record, name, rotated) = self
            .writer
            .change_subscription(entry, path, conditions, |_, settings| {
                editor.rotate_secret(&mut settings.signing, written)
            })
            .await?;
        tracing::info!(
            topic = %record.name, subscription = %name, signature = %rotated.kind, "signing secret rotated"
        );
        Ok(JsonResponse::with_etag(
            rotated,
            subscription_etag(&record, &record.settings.subscriptions[&name]),
        ))
    }
}
