//! The admin key as posthaste makes it. Its last characters are computed from those before, so that
//! a key that was cut off, or of which a character was changed, is not taken for another key.
//!
//! Other keys have no such form: those that operators choose, and those of older versions.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::Secret;

/// The beginning of a made key. What is cut off within it is shorter than any admin key.
const PREFIX: &str = "phadmin1_";

/// Random bytes in a made key.
pub const MADE_KEY_BYTES: usize = 32;

/// Characters of those bytes, by which a key of this form is known.
const RANDOM_CHARS: usize = (MADE_KEY_BYTES * 8).div_ceil(6);

/// Bytes of the digest behind them: one broken key in four billion looks whole.
const CHECK_BYTES: usize = 4;

/// A new admin key of random bytes.
pub fn made_key(random: &[u8; MADE_KEY_BYTES]) -> Secret {
    let mut key = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    key.push_str(&check_characters(&key));
    Secret::new(key)
}

/// Whether a text begins like a made key and is none.
pub(super) fn is_broken(text: &str) -> bool {
    if !text.starts_with(PREFIX) {
        return false;
    }
    let whole = text.split_at_checked(PREFIX.len() + RANDOM_CHARS);
    whole.is_none_or(|(checked, written)| check_characters(checked) != written)
}

fn check_characters(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(&Sha256::digest(text)[..CHECK_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ADMIN_KEY_CHARS_MIN;
    use proptest::prelude::*;

    #[test]
    fn made_key_has_one_form() {
        let key = made_key(&[7; MADE_KEY_BYTES]);
        assert_eq!(
            key.expose(),
            "phadmin1_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcSMKEhg"
        );
    }

    #[test]
    fn other_keys_are_not_broken() {
        for key in [
            "",
            "a-key-of-my-own-choice",
            "phadmin",
            "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
            "PHADMIN1_x",
        ] {
            assert!(!is_broken(key), "{key}");
        }
    }

    proptest! {
        #[test]
        fn made_key_that_is_cut_or_changed_shows(random: [u8; MADE_KEY_BYTES], at in 0..58_usize) {
            let key = made_key(&random);
            let key = key.expose();
            prop_assert!(!is_broken(key));
            for cut in ADMIN_KEY_CHARS_MIN..key.len() {
                prop_assert!(is_broken(&key[..cut]), "{cut}");
            }
            let longer = format!("{key}x");
            prop_assert!(is_broken(&longer));
            let at = at.max(PREFIX.len()).min(key.len() - 1);
            let other = if &key[at..=at] == "x" { "y" } else { "x" };
            let changed = format!("{}{other}{}", &key[..at], &key[at + 1..]);
            prop_assert!(is_broken(&changed));
            let missing = format!("{}{}", &key[..at], &key[at + 1..]);
            prop_assert!(is_broken(&missing));
        }
    }
}
