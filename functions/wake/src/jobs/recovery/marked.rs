//! A mark, and the version that it has. Every write is on condition that nobody else wrote it since.

use posthaste_core::stored::RecoveryMark;
use posthaste_ports::{ETag, ObjectStore, Ports, PutCondition};

use crate::jobs::replays::ReplayError;
use crate::ports::WakePorts;

/// A mark, and the version that it has.
#[derive(Debug)]
pub(super) struct Marked {
    pub(super) mark: RecoveryMark,
    pub(super) key: String,
    etag: ETag,
}

impl Marked {
    /// The mark under this key, if it is there.
    pub(super) async fn load<P: Ports>(
        ports: &WakePorts<P>,
        key: &str,
    ) -> Result<Option<Self>, ReplayError> {
        let found = ports.state.get(key).await.map_err(ReplayError::Store)?;
        let Some(object) = found else {
            return Ok(None);
        };
        let mark = RecoveryMark::parse(&object.bytes).map_err(ReplayError::Mark)?;
        Ok(Some(Self {
            mark,
            key: key.to_owned(),
            etag: object.etag,
        }))
    }

    /// Writes the mark, if it differs from what is stored.
    pub(super) async fn save<P: Ports>(
        &mut self,
        ports: &WakePorts<P>,
        mark: RecoveryMark,
    ) -> Result<(), ReplayError> {
        if mark == self.mark {
            return Ok(());
        }
        let condition = PutCondition::IfMatch(self.etag.clone());
        let put = ports.state.put(&self.key, mark.render(), condition).await;
        self.etag = put.map_err(ReplayError::Store)?;
        self.mark = mark;
        Ok(())
    }
}
