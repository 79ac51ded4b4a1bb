//! The operating system's randomness.

use std::cell::RefCell;

use posthaste_ports::Entropy;

/// Bytes that a thread draws at once. An event takes some twenty, and a system call takes longer
/// than all else that is done with them.
const DRAWN_BYTES: usize = 1024;

thread_local! {
    static DRAWN: RefCell<DrawnBytes> = const { RefCell::new(DrawnBytes::NOTHING) };
}

/// The operating system's randomness, fit for keys and secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

/// Random bytes of one thread, of which the first are used.
struct DrawnBytes {
    bytes: [u8; DRAWN_BYTES],
    used: usize,
}

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        if bytes.len() > DRAWN_BYTES {
            return draw_random(bytes);
        }
        DRAWN.with_borrow_mut(|drawn| drawn.take_into(bytes));
    }
}

impl DrawnBytes {
    const NOTHING: Self = Self {
        bytes: [0; DRAWN_BYTES],
        used: DRAWN_BYTES,
    };

    /// Gives bytes out, each once: no copy of them stays here.
    fn take_into(&mut self, bytes: &mut [u8]) {
        if DRAWN_BYTES - self.used < bytes.len() {
            draw_random(&mut self.bytes);
            self.used = 0;
        }
        let given = &mut self.bytes[self.used..self.used + bytes.len()];
        bytes.copy_from_slice(given);
        given.fill(0);
        self.used += bytes.len();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one adapter that draws real randomness"
)]
fn draw_random(bytes: &mut [u8]) {
    if let Err(error) = getrandom::fill(bytes) {
        tracing::error!(%error, "the operating system gave no randomness; no key would be safe");
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn random_bytes_are_given_out_once() {
        let drawn: BTreeSet<_> = (0..10_000).map(|_| SystemEntropy.uuid()).collect();
        assert_eq!(drawn.len(), 10_000);
    }

    #[test]
    fn any_number_of_bytes_is_filled() {
        for length in [1, 7, DRAWN_BYTES, DRAWN_BYTES + 1, 10 * DRAWN_BYTES] {
            let mut bytes = vec![0; length];
            SystemEntropy.fill(&mut bytes);
            // A run of 32 zeroes comes once in 10^77 draws.
            assert!(
                bytes.chunks_exact(32).all(|chunk| chunk != [0; 32]),
                "{length}"
            );
        }
    }

    #[test]
    fn bytes_that_were_given_out_are_not_kept() {
        let mut drawn = DrawnBytes::NOTHING;
        let mut bytes = [0; 64];
        drawn.take_into(&mut bytes);
        assert_eq!(drawn.bytes[..64], [0; 64]);
        assert_ne!(drawn.bytes[64..], [0; DRAWN_BYTES - 64]);
    }
}
