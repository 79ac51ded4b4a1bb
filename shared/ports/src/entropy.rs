//! Chance as a port.

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

    /// A number uniform in `0.0..1.0`.
    fn fraction(&self) -> f64 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    }
}
