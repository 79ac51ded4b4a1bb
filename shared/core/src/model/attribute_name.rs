//! The names of CloudEvents' attributes.

/// Whether an attribute may have this name: lower-case letters and digits, of any length.
pub(crate) fn is_attribute_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}
