//! A mark, and the version that it has. Every write is on condition that nobody else wrote it since.

use posthaste_core::stored::{LetterProbe, RecoveryMark};
use posthaste_ports::{ETag, ObjectStore, Ports, PutCondition};
use posthaste_services::{ObjectEdit, update_object};

use crate::jobs::replays::{ReplayError, ReplayReceiver};
use crate::ports::WakePorts;

/// A mark, and the version that it has.
#[derive(Debug)]
pub(super) struct StoredMark {
    pub(super) mark: RecoveryMark,
    pub(super) key: String,
    etag: ETag,
}

impl StoredMark {
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

    /// The subscription of the mark, if it is still the creation that its letters were accepted for.
    pub(super) async fn find_receiver<P: Ports>(
        &self,
        ports: &WakePorts<P>,
    ) -> Result<Option<ReplayReceiver>, ReplayError> {
        let mark = &self.mark;
        ReplayReceiver::find_by(ports, &mark.topic, &mark.subscription, |created| {
            created.has_accepted(mark.identity, mark.last_at)
        })
        .await
    }

    /// Looks again before an effect that rests on the mark. Answers whether the mark still says what
    /// the step was taken from: deadletter may have counted more letters meanwhile.
    pub(super) async fn refresh_and_check<P: Ports>(
        &mut self,
        ports: &WakePorts<P>,
    ) -> Result<bool, ReplayError> {
        let Some(found) = Self::load(ports, &self.key).await? else {
            return Ok(false);
        };
        let counted = RecoveryMark {
            accepted_at: self.mark.accepted_at,
            outage_since: self.mark.outage_since,
            from: self.mark.from,
            last_at: self.mark.last_at,
            letters: self.mark.letters,
            newest: self.mark.newest,
            ..found.mark.clone()
        };
        let is_same = counted == self.mark && !found.mark.is_empty();
        *self = found;
        Ok(is_same)
    }

    /// Writes that a letter was sent as a probe, whoever else writes the mark meanwhile.
    pub(super) async fn note_probe<P: Ports>(
        &self,
        ports: &WakePorts<P>,
        probe: &LetterProbe,
    ) -> Result<(), ReplayError> {
        let noted = update_object(&ports.state, &self.key, |found| {
            let Some(object) = found else {
                return Ok(ObjectEdit::Keep(()));
            };
            let mark = RecoveryMark::parse(&object.bytes)?.with_probe(probe.clone());
            Ok(ObjectEdit::Write(mark.render(), ()))
        });
        noted.await.map_err(ReplayError::Probe)?;
        Ok(())
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
