//! `subscriptions rotate-secret`: the new secret, what receivers verify with, and until when the old ones
//! sign.

use posthaste_core::api::{IsoTimestamp, RotatedSecret, SigningSettings};
use serde::Serialize;
use serde_json::json;
use ureq::http::Method;

use crate::client::Call;
use crate::commands::Session;
use crate::error::CommandError;
use crate::output::Reply;

/// Arguments of the command line. The server checks them, because it knows the limits.
#[derive(Debug, Serialize)]
pub(super) struct RotateRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) overlap: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'a str>,
}

pub(super) fn run(
    session: &Session,
    topic: &str,
    name: &str,
    asked: &RotateRequest<'_>,
) -> Result<Reply, CommandError> {
    let path = ["topics", topic, "subscriptions", name, "rotate-secret"];
    let body = json!(asked).to_string().into_bytes();
    let call = Call::new(Method::POST, &path).key(&session.key).body("application/json", body);
    let rotated: RotatedSecret = session.client.json(call)?;
    Ok(reply(&rotated))
}

fn reply(rotated: &RotatedSecret) -> Reply {
    let mut reply = Reply::new(json!(rotated)).line(rotated.secret.expose());
    if let Some(public_key) = &rotated.public_key {
        reply = reply.line(format!("receivers verify with {public_key}"));
    }
    reply = reply.line("It signs first from now on, and is not shown again.");
    match old(&rotated.signing) {
        rows if rows.is_empty() => reply,
        rows => reply.table(["older secret", "signs until"], rows),
    }
}

/// The secrets behind the first one, by their place, and until when they sign.
fn old(signing: &SigningSettings) -> Vec<[String; 2]> {
    let until = |time: Option<IsoTimestamp>| time.map_or("for good".to_owned(), |time| time.0.to_string());
    let row = |(place, (_, time)): (usize, (_, _))| [(place + 1).to_string(), until(time)];
    signing.timed().enumerate().skip(1).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;

    #[test]
    fn the_new_secret_is_printed_first_and_the_old_ones_with_their_end() {
        let rotated: RotatedSecret = serde_json::from_value(json!({
            "secret": "whsk_abc", "kind": "v1a", "publicKey": "whpk_def",
            "signing": {
                "secrets": ["(masked)", "(masked)", "(masked)"],
                "expiresAt": [null, null, "2026-11-22T10:00:00.000Z"],
            },
        }))
        .unwrap();
        let expected = "whsk_abc\n\
            receivers verify with whpk_def\n\
            It signs first from now on, and is not shown again.\n\
            OLDER SECRET  SIGNS UNTIL\n\
            2             for good\n\
            3             2026-11-22T10:00:00.000Z\n";
        assert_eq!(reply(&rotated).render(Style::Plain), expected);
    }
}
