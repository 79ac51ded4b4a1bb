//! The cookies of sessions.

use std::net::{Ipv4Addr, Ipv6Addr};

use ::cookie::time::Duration;
use ::cookie::{Cookie, SameSite};
use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HOST, HeaderValue, ORIGIN};
use posthaste_core::model::Timestamp;
use url::Host;

use crate::console::PATH;
use crate::session::{ConsoleSession, SessionKey};

/// The cookie of a visitor who is signed in.
const SIGNED_IN: &str = "posthaste-console";

/// The cookie of the sign-in page. It has a name of its own: a browser does not send the other one
/// with a link from elsewhere, and the page that is returned then must not replace it.
const VISITING: &str = "posthaste-visit";

/// The values of the sessions' cookies in a request, that of a signed-in visitor first. A browser
/// may send several of one name.
pub(crate) fn session_values(headers: &HeaderMap) -> impl Iterator<Item = String> {
    signed_in_values(headers).chain(values_named(headers, VISITING))
}

/// The values of the cookies of a signed-in visitor in a request.
pub(crate) fn signed_in_values(headers: &HeaderMap) -> impl Iterator<Item = String> {
    values_named(headers, SIGNED_IN)
}

fn values_named(headers: &HeaderMap, wanted: &'static str) -> impl Iterator<Item = String> {
    let lines = headers.get_all(COOKIE).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let cookies = lines.flat_map(Cookie::split_parse).filter_map(Result::ok);
    let wanted = cookies.filter(move |cookie| cookie.name() == wanted);
    wanted.map(|cookie| cookie.value().to_owned())
}

/// The header that sets the cookie of a session. `is_secure` keeps it to https.
pub(crate) fn set_header(
    session: &ConsoleSession,
    key: &SessionKey,
    now: Timestamp,
    is_secure: bool,
) -> HeaderValue {
    let name = if session.is_signed_in {
        SIGNED_IN
    } else {
        VISITING
    };
    build_header(
        name,
        &session.cookie_value(key),
        session.ends_at.since(now).as_secs(),
        is_secure,
    )
}

/// The header that removes the cookie of a signed-in visitor.
pub(crate) fn removal_header(is_secure: bool) -> HeaderValue {
    build_header(SIGNED_IN, "", 0, is_secure)
}

fn build_header(name: &str, value: &str, age_secs: u64, is_secure: bool) -> HeaderValue {
    let cookie = Cookie::build((name, value))
        .path(PATH)
        .max_age(Duration::seconds(age_secs.cast_signed()))
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(is_secure);
    // Base64 and digits are visible ASCII.
    HeaderValue::try_from(cookie.to_string()).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Headers that a proxy adds.
const FORWARDED: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-proto"];

/// Whether the request was sent over plain http to this machine's own address. A proxy with TLS may
/// replace the name of the host by that address: its own headers show that, and so does the origin
/// of the page that sent a form.
pub(crate) fn is_plain_loopback(headers: &HeaderMap) -> bool {
    let is_forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    is_loopback(headers)
        && !is_forwarded
        && !origin.is_some_and(|origin| origin.starts_with("https:"))
}

fn is_loopback(headers: &HeaderMap) -> bool {
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let name = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    match Host::parse(name.map_or(host, |(name, _)| name)) {
        Ok(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Ok(Host::Ipv4(address)) => Ipv4Addr::is_loopback(&address),
        Ok(Host::Ipv6(address)) => Ipv6Addr::is_loopback(&address),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static(value))])
    }

    #[test]
    fn the_session_is_found_beside_other_cookies() {
        let check = |cookies, expected: &[&str]| {
            assert_eq!(
                session_values(&headers("cookie", cookies)).collect::<Vec<_>>(),
                expected,
                "{cookies}"
            );
        };
        check("posthaste-console=abc", &["abc"]);
        check(
            "a=b; posthaste-visit=v; posthaste-console=abc;posthaste-console=d",
            &["abc", "d", "v"],
        );
        check("posthaste-consoles=abc; x", &[]);
    }

    #[test]
    fn a_cookie_is_for_this_path_and_site_alone() {
        assert_eq!(
            build_header("name", "abc", 5, false),
            "name=abc; HttpOnly; SameSite=Strict; Path=/console; Max-Age=5"
        );
        assert_eq!(
            build_header("name", "abc", 5, true),
            "name=abc; HttpOnly; SameSite=Strict; Secure; Path=/console; Max-Age=5"
        );
    }

    #[test]
    fn the_own_machine_is_known_by_every_name() {
        let check =
            |host, expected| assert_eq!(is_loopback(&headers("host", host)), expected, "{host}");
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "127.8.8.8",
            "[::1]:80",
            "[::1]",
        ] {
            check(host, true);
        }
        for host in [
            "example.com",
            "localhost.example.com",
            "10.0.0.1:8080",
            "[::2]:80",
            "",
            "127.0.0.1.nip.io",
        ] {
            check(host, false);
        }
    }

    #[test]
    fn a_proxy_with_tls_is_known_though_it_asks_as_the_own_machine() {
        let check = |name, value, expected| {
            let mut headers = headers("host", "127.0.0.1:8080");
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(is_plain_loopback(&headers), expected, "{name}: {value}");
        };
        check("origin", "http://127.0.0.1:8080", true);
        check("origin", "null", true);
        check("origin", "https://hooks.example.com", false);
        check("x-forwarded-for", "192.0.2.1", false);
        check("x-forwarded-proto", "https", false);
        check("forwarded", "proto=https", false);
        check("via", "1.1 proxy", false);
    }
}
