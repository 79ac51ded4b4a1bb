//! URLs below a base that the operator configured.

use url::Url;

/// The URL of a path below `base`, which may have a path itself, with or without a final slash.
pub(crate) fn below(base: &Url, segments: &[&str]) -> String {
    let mut url = base.clone();
    // An http(s) URL can always be a base, so there is always a path to extend.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_below_its_base() {
        let check = |base: &str, expected: &str| {
            assert_eq!(below(&base.parse().unwrap(), &["topics", "a b"]), expected);
        };
        check("https://a.example", "https://a.example/topics/a%20b");
        check("https://a.example/base", "https://a.example/base/topics/a%20b");
        check("https://a.example/base/", "https://a.example/base/topics/a%20b");
    }
}
