//! The part of a `Content-Type` that publishing looks at: its media type and its charset.

/// A parsed `Content-Type`. Parameters other than `charset` are not looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MediaType {
    /// `type/subtype` in lower case.
    essence: String,
    /// The `charset` parameter in lower case.
    charset: Option<String>,
}

impl MediaType {
    /// Reads a header value. Reading never fails: a text that is not a media type equals none that
    /// is looked for.
    pub(super) fn parse(value: &str) -> Self {
        let mut parts = value.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts
            .filter_map(|part| part.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
            .map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase());
        Self { essence, charset }
    }

    /// `type/subtype` in lower case, without parameters.
    pub(super) fn essence(&self) -> &str {
        &self.essence
    }

    /// Whether text of this type is UTF-8: it says so, or says nothing.
    pub(super) fn is_utf8(&self) -> bool {
        matches!(
            self.charset.as_deref(),
            None | Some("utf-8" | "utf8" | "us-ascii")
        )
    }

    /// Whether it is JSON: `application/json`, `text/json` or anything with the suffix `+json`.
    pub(super) fn is_json(&self) -> bool {
        matches!(self.essence.as_str(), "application/json" | "text/json")
            || self.essence.ends_with("+json")
    }

    /// Whether it is text.
    pub(super) fn is_text(&self) -> bool {
        self.essence.starts_with("text/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_spaces_and_quotes_do_not_matter() {
        let read = MediaType::parse("Application/CloudEvents+JSON ; v=1; Charset=\"UTF-8\"");
        assert_eq!(read.essence(), "application/cloudevents+json");
        assert!(read.is_utf8() && read.is_json() && !read.is_text());
    }

    #[test]
    fn another_charset_is_not_utf8() {
        assert!(!MediaType::parse("text/plain; charset=iso-8859-1").is_utf8());
        assert!(!MediaType::parse("text/plain; charset=").is_utf8());
        assert!(MediaType::parse("text/plain").is_utf8());
    }

    #[test]
    fn malformed_media_type_is_neither_json_nor_text() {
        for value in ["", ";", "json", "image/png"] {
            let read = MediaType::parse(value);
            assert!(!read.is_json() && !read.is_text(), "{value}");
        }
    }
}
