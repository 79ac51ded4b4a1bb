//! Standard Webhooks signatures, checked from the specification and not with the program's own
//! code.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::endpoint::Received;

/// Counts the signatures of a request that this secret made. Panics if the request is not signed as
/// the specification says.
pub fn count_by(secret: &str, request: &Received) -> usize {
    let key = secret
        .strip_prefix("whsec_")
        .expect("a secret starts with whsec_");
    let key = STANDARD.decode(key).expect("a secret is base64");
    let header = |name: &str| {
        request
            .header(name)
            .unwrap_or_else(|| panic!("there is a header {name}"))
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length is a key");
    mac.update(format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    mac.update(&request.body);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    header("webhook-signature")
        .split(' ')
        .filter(|signature| *signature == expected)
        .count()
}
