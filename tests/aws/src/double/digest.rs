//! Digests in hexadecimal, as both services write them.

use std::fmt::Write as _;

use md5::{Digest, Md5};
use sha2::Sha256;

pub(super) fn md5_of(bytes: &[u8]) -> String {
    hexadecimal(&Md5::digest(bytes))
}

pub(super) fn sha256_of(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        assert_eq!(md5_of(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(
            sha256_of(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
