//! The public keys of `v1a` signatures as receivers fetch them: a JSON Web Key Set (RFC 7517, RFC
//! 8037).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::{PublicKey, SigningSecret, Timestamp};

/// The public keys that verify a subscription's `v1a` signatures. Any one of them may have signed:
/// a receiver tries each of them on each `v1a` signature of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct WebhookKeys {
    /// The keys, the newest first.
    pub keys: Vec<WebhookKey>,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookKey {
    /// `OKP`.
    #[schema(example = "OKP")]
    pub kty: String,
    /// `Ed25519`.
    #[schema(example = "Ed25519")]
    pub crv: String,
    /// `sig`.
    #[serde(rename = "use")]
    #[schema(example = "sig")]
    pub usage: String,
    /// `EdDSA`.
    #[schema(example = "EdDSA")]
    pub alg: String,
    /// The key's thumbprint (RFC 7638), the same wherever it is made. Requests do not carry it.
    #[schema(example = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")]
    pub kid: String,
    /// The key in base64url.
    #[schema(example = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")]
    pub x: String,
    /// The key as Standard Webhooks writes it, for its libraries.
    #[schema(example = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")]
    pub whpk: String,
}

impl WebhookKeys {
    /// The public keys of the secrets that are live at a time.
    pub fn live_at(secrets: &[SigningSecret], at: Timestamp) -> Self {
        let live = secrets.iter().filter(|secret| secret.is_live(at));
        Self {
            keys: live
                .filter_map(SigningSecret::public_key)
                .map(WebhookKey::from)
                .collect(),
        }
    }
}

impl From<PublicKey> for WebhookKey {
    fn from(key: PublicKey) -> Self {
        let text = str::to_owned;
        Self {
            kty: text("OKP"),
            crv: text("Ed25519"),
            usage: text("sig"),
            alg: text("EdDSA"),
            kid: key.thumbprint(),
            x: key.jwk_x(),
            whpk: key.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_live_v1a_keys_are_told_and_never_their_private_half() {
        let at = Timestamp::from_millis(1_000);
        let secret = |text: &str| SigningSecret::parse(text).unwrap();
        let private = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
        let ended =
            secret("whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=").with_expiry(Some(at));
        let symmetric = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let keys = WebhookKeys::live_at(&[secret(private), symmetric, ended], at);
        insta::assert_json_snapshot!(keys, @r#"
        {
          "keys": [
            {
              "kty": "OKP",
              "crv": "Ed25519",
              "use": "sig",
              "alg": "EdDSA",
              "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
              "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
              "whpk": "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
            }
          ]
        }
        "#);
    }
}
