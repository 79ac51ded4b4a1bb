//! The operating system's randomness.

use posthaste_ports::Entropy;

/// The operating system's randomness, fit for keys and secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(clippy::disallowed_methods, reason = "the one adapter that draws real randomness")]
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            tracing::error!(%error, "the operating system gave no randomness; no key would be safe");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_gives_other_bytes_every_time() {
        assert_ne!(SystemEntropy.uuid(), SystemEntropy.uuid());
    }
}
