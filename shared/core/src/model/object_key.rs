//! Keys of objects: the rule that every store keeps, whether it is S3 or a folder.

use super::limits::OBJECT_KEY_BYTES_MAX;

/// Whether an object can have this key: 1 to [`OBJECT_KEY_BYTES_MAX`] bytes in segments between
/// slashes. An empty segment, `.` and `..` would lead out of a folder. Control characters and
/// U+FFFE and U+FFFF cannot stand in the XML of S3's answers, and no file system takes NUL.
pub fn is_object_key(key: &str) -> bool {
    key.len() <= OBJECT_KEY_BYTES_MAX
        && key
            .split('/')
            .all(|segment| !matches!(segment, "" | "." | "..") && is_key_text(segment))
}

/// Whether each of these characters may stand in a key.
pub fn is_key_text(text: &str) -> bool {
    !text
        .chars()
        .any(|c| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_that_could_leave_its_store_is_none() {
        let check = |text: &str, expected| assert_eq!(is_object_key(text), expected, "{text:?}");
        let longest = "k".repeat(OBJECT_KEY_BYTES_MAX);
        for good in ["a", "a/b.json", "...", "a b/ü", ".a", "%2e%2e", &longest] {
            check(good, true);
        }
        let too_long = format!("{longest}k");
        for bad in [
            "", "/", "/a", "a/", "a//b", ".", "a/..", "../a", "a/./b", &too_long,
        ] {
            check(bad, false);
        }
        for refused in [
            '\0', '\n', '\u{1f}', '\u{7f}', '\u{85}', '\u{fffe}', '\u{ffff}',
        ] {
            check(&format!("a/b{refused}c"), false);
        }
    }
}
