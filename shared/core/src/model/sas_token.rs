//! Event Grid's shared access signatures, `r={resource}&e={expiry}&s={signature}`: a publish key
//! lends its right to the holder of the token, until it expires.
//! <https://learn.microsoft.com/azure/event-grid/authenticate-with-access-keys-shared-access-signatures>

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::civil::{DateTime, date};
use sha2::Sha256;
use url::{Url, form_urlencoded};

use crate::model::{Secret, Timestamp, TopicName};

/// The form in which .NET and JavaScript write the expiry; Java writes no leading zeros, which the
/// same form takes.
const US_FORM: &str = "%m/%d/%Y %I:%M:%S %p";

/// The form that Python writes when a `datetime` is made into text.
const ISO_FORMS: [&str; 2] = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"];

/// A token as it was offered. Nothing of it is trusted before [`SasToken::is_valid_for`].
pub struct SasToken<'a> {
    /// The text that is signed: the token as written, up to its signature.
    signed: &'a str,
    signature: Vec<u8>,
    resource: Url,
    expires_at: Timestamp,
}

impl<'a> SasToken<'a> {
    /// Reads a token; `None` if it is none.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (signed, _) = text.rsplit_once("&s=")?;
        // A plus that was not escaped has become a space.
        let signature = STANDARD
            .decode(find_once(text, "s")?.replace(' ', "+"))
            .ok()?;
        let resource = Url::parse(&find_once(text, "r")?).ok()?;
        let expires_at = parse_expiry(&find_once(text, "e")?)?;
        Some(Self {
            signed,
            signature,
            resource,
            expires_at,
        })
    }

    /// Whether it opens this topic at this time: signed with this key, for the topic's own path,
    /// and not expired. The signature is compared in constant time.
    ///
    /// The resource's host is not looked at. Only the topic's own keys sign for it, so a token says
    /// nothing of other servers; and behind a proxy or in Lambda this program does not know by
    /// which name its producers call it.
    pub fn is_valid_for(&self, key: &Secret, topic: &TopicName, now: Timestamp) -> bool {
        self.is_signed_for(key, topic) && now < self.expires_at
    }

    /// Whether it opened this topic until its time was over. Only a caller that got it from the
    /// key's owner learns this.
    pub fn has_expired(&self, key: &Secret, topic: &TopicName, now: Timestamp) -> bool {
        self.is_signed_for(key, topic) && now >= self.expires_at
    }

    fn is_signed_for(&self, key: &Secret, topic: &TopicName) -> bool {
        let Some(mac) = keyed_hmac(key) else {
            return false;
        };
        mac.chain_update(self.signed)
            .verify_slice(&self.signature)
            .is_ok()
            && self.is_for(topic)
    }

    /// Whether the resource is where events of this topic are published. A proxy may have a path in
    /// front of ours.
    fn is_for(&self, topic: &TopicName) -> bool {
        let path = self
            .resource
            .path()
            .trim_end_matches('/')
            .to_ascii_lowercase();
        ["events", "api/events"]
            .iter()
            .any(|end| path.ends_with(&format!("/topics/{}/{end}", topic.folded())))
    }
}

/// The value of a member that stands once in a token.
fn find_once(token: &str, wanted: &str) -> Option<String> {
    let mut found = form_urlencoded::parse(token.as_bytes()).filter(|(name, _)| name == wanted);
    let (_, value) = found.next()?;
    found.next().is_none().then(|| value.into_owned())
}

impl fmt::Debug for SasToken<'_> {
    /// Shows neither the signed text nor the signature, because every reader of a token may use it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The keyed state; `None` for a key that is not base64, which signs nothing.
fn keyed_hmac(key: &Secret) -> Option<Hmac<Sha256>> {
    let key = STANDARD
        .decode(key.expose())
        .ok()
        .filter(|key| !key.is_empty())?;
    Hmac::<Sha256>::new_from_slice(&key).ok()
}

/// The time, in one of the forms that Azure's clients write: UTC unless an offset is written.
fn parse_expiry(text: &str) -> Option<Timestamp> {
    // Newer .NET puts a narrow space before AM and PM.
    let text = text.trim().replace('\u{202f}', " ");
    if let Ok(time) = DateTime::strptime(US_FORM, &text) {
        return to_utc(time, 0);
    }
    let (civil, east_secs) = split_offset(&text)?;
    let time = ISO_FORMS
        .iter()
        .find_map(|form| DateTime::strptime(form, civil).ok())?;
    to_utc(time, east_secs)
}

/// The text without its offset, and the offset in seconds east of UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(civil) = text.strip_suffix(['Z', 'z']) {
        return Some((civil, 0));
    }
    let time_at = text.find([' ', 'T'])?;
    let Some(sign_at) = text.rfind(['+', '-']).filter(|at| *at > time_at) else {
        return Some((text, 0));
    };
    let (civil, written) = text.split_at(sign_at);
    let (hours, minutes) = written[1..].split_once(':')?;
    let hours: i64 = hours.parse().ok()?;
    let minutes: i64 = minutes.parse().ok()?;
    let east_secs = (hours.min(99) * 60 + minutes.min(99)) * 60;
    Some((
        civil,
        if written.starts_with('-') {
            -east_secs
        } else {
            east_secs
        },
    ))
}

fn to_utc(time: DateTime, east_secs: i64) -> Option<Timestamp> {
    let since_epoch = date(1970, 1, 1).at(0, 0, 0, 0).duration_until(time);
    let millis = since_epoch.as_millis() - i128::from(east_secs) * 1000;
    Some(Timestamp::from_millis(u64::try_from(millis.max(0)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `base64("0123456789abcdef")`.
    const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-21T20:00:00Z").unwrap()
    }

    fn encode(text: &str) -> String {
        form_urlencoded::byte_serialize(text.as_bytes()).collect()
    }

    fn token(resource: &str, expiry: &str) -> String {
        let signed = format!("r={}&e={}", encode(resource), encode(expiry));
        let mac = keyed_hmac(&Secret::new(KEY)).unwrap().chain_update(&signed);
        format!(
            "{signed}&s={}",
            encode(&STANDARD.encode(mac.finalize().into_bytes()))
        )
    }

    fn opens(token: &str, key: &str) -> bool {
        let topic = TopicName::parse("Orders").unwrap();
        SasToken::parse(token)
            .is_some_and(|token| token.is_valid_for(&Secret::new(key), &topic, now()))
    }

    fn check(resource: &str, expiry: &str, expected: bool) {
        assert_eq!(
            opens(&token(resource, expiry), KEY),
            expected,
            "{resource} {expiry}"
        );
    }

    const HERE: &str = "http://127.0.0.1:8080/topics/orders/events?apiVersion=2018-01-01";
    const LATER: &str = "2026-11-21 20:00:01";

    #[test]
    fn a_token_of_azure_s_python_client_opens() {
        // generate_sas("http://127.0.0.1:8080/topics/orders/events", KEY, datetime(2026, 11, 21, 20, 30)).
        let signed = "r=http%3A%2F%2F127.0.0.1%3A8080%2Ftopics%2Forders%2Fevents%3FapiVersion%3D2018-01-01\
                      &e=2026-11-21%2020%3A30%3A00";
        let token = format!("{signed}&s=vcZhK0Xkxmc%2FHk9OTE3aLl%2FSwYXMGAztv7ZCN083%2FoY%3D");
        assert!(opens(&token, KEY));
    }

    #[test]
    fn only_what_opened_before_has_expired() {
        let topic = TopicName::parse("Orders").unwrap();
        let check = |token: &str, key: &str, expected: bool| {
            let token = SasToken::parse(token).unwrap();
            assert_eq!(
                token.has_expired(&Secret::new(key), &topic, now()),
                expected
            );
        };
        let past = token(HERE, "2026-11-21 20:00:00");
        check(&past, KEY, true);
        check(&past, "b3RoZXI=", false);
        check(&past.replace("2026", "2025"), KEY, false);
        check(&token(HERE, LATER), KEY, false);
        check(
            &token(
                "https://a.example/topics/other/events",
                "2026-11-21 20:00:00",
            ),
            KEY,
            false,
        );
    }

    #[test]
    fn debug_shows_no_secret() {
        let token = token(HERE, LATER);
        assert_eq!(
            format!("{:?}", SasToken::parse(&token).unwrap()),
            "[redacted]"
        );
    }

    #[test]
    fn the_time_is_read_as_every_client_writes_it() {
        for later in [
            LATER,
            "2026-11-21 20:00:00.000001",
            "2026-11-21T20:00:01Z",
            "2026-11-21 20:00:01+00:00",
            "2026-11-21 21:00:01.5+01:00",
            "2026-11-22 01:30:01+05:30",
            "2026-11-21T10:00:01-10:00",
            "11/21/2026 8:00:01 PM",
            "11/21/2026 8:00:01\u{202f}PM",
            "1/2/2027 3:4:5 AM",
        ] {
            check(HERE, later, later != "2026-11-21 20:00:00.000001");
        }
        for past in [
            "2026-11-21 20:00:00",
            "11/21/2026 8:00:00 PM",
            "2026-11-21T21:00:00+01:00",
            "2026-11-22T01:30:00+05:30",
            "1/2/1960 3:4:5 AM",
        ] {
            check(HERE, past, false);
        }
        for never in [
            "",
            "later",
            "1795341600",
            "2026-13-01 00:00:00",
            "2027-01-01 00:00:00+x:00",
            "2027-01-01",
        ] {
            check(HERE, never, false);
        }
    }

    #[test]
    fn the_resource_is_this_topic_s() {
        for here in [
            "https://proxy.example/posthaste/topics/Orders/events",
            "https://a.example/TOPICS/ORDERS/api/events/",
            "https://a.example/topics/orders/api/events?api-version=2018-01-01",
        ] {
            check(here, LATER, true);
        }
        for elsewhere in [
            "https://a.example/topics/other/events",
            "https://a.example/topics/orders",
            "https://a.example/?x=/topics/orders/events",
            "/topics/orders/events",
            "https://a.example/x-topics/orders/events/more",
        ] {
            check(elsewhere, LATER, false);
        }
    }

    #[test]
    fn only_what_was_signed_opens_and_only_with_the_key() {
        let good = token(HERE, LATER);
        assert!(opens(&good, KEY));
        for (found, instead) in [
            ("2026", "2027"),
            ("orders", "Orders"),
            ("&e=", "&e=1&e="),
            ("r=", "x=1&r="),
            ("&s=", "&s=AAAA&s="),
        ] {
            assert!(!opens(&good.replacen(found, instead, 1), KEY), "{found}");
        }
        for key in ["", "b3RoZXI=", "not base64!", "MDEyMzQ1Njc4OWFiY2RlZg"] {
            assert!(!opens(&good, key), "{key}");
        }
        for text in ["", "r=&e=&s=", "s=", "&s=", "r=x", "SharedAccessSignature"] {
            assert!(!opens(text, KEY), "{text}");
        }
    }
}
