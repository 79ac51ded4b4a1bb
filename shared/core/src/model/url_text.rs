//! URLs as people write them. The parser of the web repairs much that is no URL (RFC 3986), such as
//! a backslash or a missing slash, and what is written is then not where a request goes. So a text
//! is refused that needs a repair. What has several spellings, such as a host in capitals, is
//! accepted, and shown in its normal form.

use std::net::{IpAddr, Ipv6Addr};

use url::{Host, Url};

use super::pasted::{PastedError, read_pasted};

/// Most bytes of a label of a host name (RFC 1035, section 2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// Most bytes of a host name, without a full stop at its end: 255 with the lengths of its labels.
const NAME_BYTES_MAX: usize = 253;

/// Why a text is not accepted as the URL that a parser makes of it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UrlTextError {
    /// No URL at all.
    #[error("not an absolute URL: {0}")]
    NotAUrl(url::ParseError),
    /// A character in it is not seen.
    #[error("{0}")]
    Pasted(PastedError),
    /// Another text than the URL that it is taken for.
    #[error("is not a URL as it is written; if {normal} is meant, write that")]
    Repaired {
        /// The URL that it is taken for.
        normal: String,
    },
    /// A label of the host name that no name server can have.
    #[error("its host name has a label of {0} bytes; expected 1 to {LABEL_BYTES_MAX}")]
    Label(usize),
    /// A host name that is too long for a name server.
    #[error("its host name has {0} bytes; expected at most {NAME_BYTES_MAX}")]
    HostName(usize),
}

/// Parses a URL with a host that is being written. What is around it, such as a line end, is left
/// out.
pub fn parse_written(text: &str) -> Result<Url, UrlTextError> {
    let text = read_pasted(text).map_err(UrlTextError::Pasted)?;
    let url = Url::parse(text).map_err(UrlTextError::NotAUrl)?;
    check_written(text, &url)?;
    Ok(url)
}

/// Requires that the text needed no repair to become this URL, and that its host can have the name.
pub(super) fn check_written(text: &str, url: &Url) -> Result<(), UrlTextError> {
    if !is_as_written(text, url) {
        let normal = url.to_string();
        return Err(UrlTextError::Repaired { normal });
    }
    match url.host() {
        Some(Host::Domain(name)) => check_name(name),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), UrlTextError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > NAME_BYTES_MAX {
        return Err(UrlTextError::HostName(name.len()));
    }
    let mut lengths = name.split('.').map(str::len);
    match lengths.find(|length| !(1..=LABEL_BYTES_MAX).contains(length)) {
        Some(length) => Err(UrlTextError::Label(length)),
        None => Ok(()),
    }
}

/// Whether each part of the text is that of the URL, in another spelling at most.
fn is_as_written(text: &str, url: &Url) -> bool {
    if text.contains(' ') {
        return false;
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (credentials, place) = match authority.rsplit_once('@') {
        Some((credentials, place)) => (credentials, place),
        None => ("", authority),
    };
    // The part before an `@` is kept, because other code refuses it.
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    scheme.eq_ignore_ascii_case(url.scheme())
        && !authority.contains('\\')
        && !path.contains('\\')
        && credentials.is_empty() != has_credentials
        && (has_credentials || !authority.contains('@'))
        && is_place_as_written(place, url)
}

/// Whether a host, with a port or without, is that of the URL.
fn is_place_as_written(place: &str, url: &Url) -> bool {
    // An address of IPv6 has colons of its own, in brackets.
    let after_host = place.rfind(']').unwrap_or_default();
    let (host, port) = match place[after_host..].rfind(':') {
        Some(at) => (
            &place[..after_host + at],
            Some(&place[after_host + at + 1..]),
        ),
        None => (place, None),
    };
    let is_port_same = port.is_none_or(|port| {
        let number = port.parse::<u16>().ok();
        number == url.port_or_known_default() && number.is_some_and(|it| it.to_string() == port)
    });
    is_port_same && is_host_as_written(host, url)
}

fn is_host_as_written(host: &str, url: &Url) -> bool {
    match url.host() {
        // Another alphabet is written in ASCII where it is shown.
        Some(Host::Domain(name)) if host.is_ascii() => host.eq_ignore_ascii_case(name),
        Some(Host::Domain(_)) => !host.contains('%'),
        // No octal or hexadecimal numbers, and all four of them.
        Some(Host::Ipv4(address)) => host.parse() == Ok(IpAddr::from(address)),
        Some(Host::Ipv6(address)) => host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .is_some_and(|host| host.parse() == Ok::<Ipv6Addr, _>(address)),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The normal form of a text, or why it is refused.
    fn parsed(text: &str) -> Result<String, String> {
        parse_written(text)
            .map(String::from)
            .map_err(|error| error.to_string())
    }

    fn refused(text: &str, normal: &str) {
        let expected = format!("is not a URL as it is written; if {normal} is meant, write that");
        assert_eq!(parsed(text), Err(expected), "{text:?}");
    }

    #[test]
    fn other_spellings_have_their_normal_form() {
        let accepted = |text: &str, normal: &str| {
            assert_eq!(parsed(text).as_deref(), Ok(normal), "{text:?}");
        };
        accepted("https://Example.com", "https://example.com/");
        accepted("HTTPS://example.COM:443/A?B#C", "https://example.com/A?B#C");
        accepted(
            "https://example.com:8443/a/../b",
            "https://example.com:8443/b",
        );
        accepted("https://example.com./", "https://example.com./");
        accepted("https://a_b.example/", "https://a_b.example/");
        accepted(
            "https://bücher.example/ü",
            "https://xn--bcher-kva.example/%C3%BC",
        );
        accepted("http://127.0.0.1:9000", "http://127.0.0.1:9000/");
        accepted("http://[2001:DB8:0::1]:80/x", "http://[2001:db8::1]/x");
        accepted("https://example.com?a=\\b", "https://example.com/?a=\\b");
        accepted(
            "https://user:pw@example.com/",
            "https://user:pw@example.com/",
        );
        accepted("https://a.example/%2f..%2F", "https://a.example/%2f..%2F");
    }

    /// URL that a parser would repair is refused with its normal form.
    #[test]
    fn url_needing_repair_is_refused_with_its_normal_form() {
        for text in [
            "https:example.com",
            "https:/example.com",
            "https:///example.com",
            "https:////example.com/",
            "https:\\\\example.com",
            "https://\\example.com",
            "https://example.com\\",
            "https:/\\example.com",
            "https://@example.com",
            "https://:@example.com/",
            "https://example.com:",
            "https://example.com:/",
            "https://example.com:0443/",
            "https://ex%61mple.com/",
        ] {
            refused(text, "https://example.com/");
        }
        refused("https://example.com/a b", "https://example.com/a%20b");
        refused("https://example.com/?a b", "https://example.com/?a%20b");
        refused("https://example.com/a\\b", "https://example.com/a/b");
        refused("https://example.com:08443/", "https://example.com:8443/");
    }

    #[test]
    fn unseen_characters_around_a_url_are_left_out() {
        for text in [
            " https://example.com",
            "https://example.com/\r\n",
            "\u{feff}https://example.com",
            "\u{200b}\u{a0}https://example.com/\u{ad}\u{200e}",
        ] {
            assert_eq!(
                parsed(text).as_deref(),
                Ok("https://example.com/"),
                "{text:?}"
            );
        }
    }

    #[test]
    fn unseen_characters_in_a_url_are_refused_by_name() {
        let check = |text: &str, name: &str| {
            let error = parsed(text).unwrap_err();
            let expected = format!(" is {name}, which is not seen; remove it");
            assert!(error.ends_with(&expected), "{text:?}: {error}");
        };
        check("https://exam\tple.com", "TAB (U+0009)");
        check("https://example.\r\ncom/", "CARRIAGE RETURN (U+000D)");
        check("ht\ntps://example.com/", "LINE FEED (U+000A)");
        check("\u{0}https://example.com/", "NULL (U+0000)");
        check("https://exam\u{200b}ple.com/", "ZERO WIDTH SPACE (U+200B)");
        check("https://example.com/a\u{ad}b", "SOFT HYPHEN (U+00AD)");
        check(
            "https://example.com/\u{202e}b",
            "RIGHT-TO-LEFT OVERRIDE (U+202E)",
        );
        check("https://example.com/?a=\u{a0}b", "NO-BREAK SPACE (U+00A0)");
    }

    #[test]
    fn only_four_decimal_numbers_are_an_address() {
        for text in [
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://127.0.0.0x1/",
            "http://１２７.0.0.1/",
        ] {
            refused(text, "http://127.0.0.1/");
        }
    }

    #[test]
    fn labels_and_names_have_the_lengths_of_dns() {
        let label = |bytes: usize| "a".repeat(bytes);
        let url = |name: &str| format!("https://{name}/");
        let is_accepted = |name: &str| parsed(&url(name)) == Ok(url(name));
        assert!(is_accepted(&format!("{}.example", label(63))));
        assert_eq!(
            parse_written(&url(&format!("{}.example", label(64)))),
            Err(UrlTextError::Label(64))
        );
        assert_eq!(
            parse_written(&url("a..example")),
            Err(UrlTextError::Label(0))
        );
        let long = format!("{}.", label(63)).repeat(3);
        assert!(is_accepted(&format!("{long}{}", label(61))));
        assert!(is_accepted(&format!("{long}{}.", label(61))));
        assert_eq!(
            parse_written(&url(&format!("{long}{}", label(62)))),
            Err(UrlTextError::HostName(254))
        );
    }

    proptest! {
        #[test]
        fn normal_form_of_what_is_accepted_is_accepted(
            text in "(https?:|HTTP:|)[/\\\\]{0,3}[a-zA-Z0-9.@:\\[\\]%\\\\ \t\n_-]{0,20}[/?#\\\\a-z%. ü]{0,12}",
        ) {
            if let Ok(url) = parse_written(&text) {
                prop_assert_eq!(parse_written(url.as_str()), Ok(url));
            }
        }
    }
}
