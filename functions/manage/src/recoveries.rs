//! Recoveries by themselves, as lists of dead letters tell of them.

use std::error::Error;
use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::RecoveryView;
use posthaste_core::stored::{RecoveryMark, ReplayRecord, layout};
use posthaste_ports::{ObjectStore, PortError, Ports};

use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// Most recoveries that a list tells of.
const SHOWN_MAX: usize = 20;

/// The reader of recoveries.
pub(crate) struct RecoveryReader<P: Ports> {
    state: SharedPort<P, P::Store>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for RecoveryReader<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
        }
    }
}

impl<P: Ports> RecoveryReader<P> {
    /// The recoveries whose marks have this key, or begin with it. A list of dead letters does not
    /// fail for want of them.
    pub(crate) async fn list_recoveries(&self, prefix: &str) -> Vec<RecoveryView> {
        self.read_recoveries(prefix).await.unwrap_or_else(|error| {
            let error = &error as &dyn Error;
            tracing::warn!(error, "recoveries by themselves not looked up");
            Vec::new()
        })
    }

    async fn read_recoveries(&self, prefix: &str) -> Result<Vec<RecoveryView>, PortError> {
        let listed = self.state.list(prefix, None, SHOWN_MAX).await?;
        let mut views = Vec::new();
        for object in listed.objects {
            views.extend(self.read_recovery(&object.key).await?);
        }
        Ok(views)
    }

    /// The recovery of a mark; `None` if there is none, or it cannot be read.
    async fn read_recovery(&self, key: &str) -> Result<Option<RecoveryView>, PortError> {
        let Some(object) = self.state.get(key).await? else {
            return Ok(None);
        };
        let Ok(mark) = RecoveryMark::parse(&object.bytes) else {
            tracing::warn!(key, "the mark of an outage cannot be read");
            return Ok(None);
        };
        let found = match &mark.job {
            Some(job) => self.state.get(&layout::replay_record_key(&job.id)).await?,
            None => None,
        };
        let job = found.and_then(|object| ReplayRecord::parse(&object.bytes).ok());
        Ok(RecoveryView::from_mark(&mark, job.as_ref()))
    }
}
