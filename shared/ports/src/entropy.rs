//! Chance as a port.

use posthaste_core::model::Timestamp;
use uuid::Uuid;

/// A source of unpredictable bytes, good enough for keys and secrets.
pub trait Entropy: Clone + Send + Sync + 'static {
    /// Fills `bytes`. Cannot fail: an adapter whose source fails aborts, because no key would be
    /// safe.
    fn fill(&self, bytes: &mut [u8]);

    /// A random (version 4) UUID.
    fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// A UUID of version 7, which begins with the milliseconds of `at`. One of a later millisecond
    /// sorts behind it. Those of one millisecond are in no order.
    fn uuid_at(&self, at: Timestamp) -> Uuid {
        let mut bytes = [0; 10];
        self.fill(&mut bytes);
        uuid::Builder::from_unix_timestamp_millis(at.as_millis(), &bytes).into_uuid()
    }

    /// A number uniform in `0.0..1.0`.
    fn fraction(&self) -> f64 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    }
}
