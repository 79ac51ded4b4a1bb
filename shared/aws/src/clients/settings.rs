//! Region, endpoints and credentials, read from the environment once and from nowhere else.

use std::fmt;

use aws_credential_types::Credentials;
use http::Uri;
use posthaste_core::model::Secret;

const REGION: &str = "AWS_REGION";
const ACCESS_KEY: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
const ENDPOINT: &str = "AWS_ENDPOINT_URL";
const ENDPOINT_SQS: &str = "AWS_ENDPOINT_URL_SQS";
const ENDPOINT_S3: &str = "AWS_ENDPOINT_URL_S3";

/// Region, endpoints and credentials of one process.
///
/// Lambda puts all of them into the environment and replaces the environment before the credentials expire.
/// So there is neither a chain of providers nor a refresh here, and no request to the instance metadata
/// service.
#[derive(Debug, Clone)]
pub struct AwsSettings {
    pub(super) region: String,
    pub(super) sqs_endpoint: Option<Endpoint>,
    pub(super) s3_endpoint: Option<Endpoint>,
    access_key: String,
    secret_key: Secret,
    session_token: Option<Secret>,
}

/// The http or https URL of a service that is not AWS's own: an emulator's.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Endpoint(String);

/// Why the environment does not tell how to reach AWS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AwsSettingsError {
    /// A variable that must be there is not, or is empty.
    #[error("{name} is not set, expected {expected}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// The form of its value.
        expected: &'static str,
    },
    /// An endpoint is no URL.
    #[error("{name} is {value:?}, expected a URL such as http://127.0.0.1:4566")]
    Endpoint {
        /// The variable.
        name: &'static str,
        /// The refused value.
        value: String,
    },
}

impl AwsSettings {
    /// Reads the settings from variables, which `variable` looks up by name. An empty one counts as not set.
    pub fn from_env(variable: impl Fn(&str) -> Option<String>) -> Result<Self, AwsSettingsError> {
        let optional = |name| variable(name).filter(|value| !value.is_empty());
        let required = |name, expected| optional(name).ok_or(AwsSettingsError::Missing { name, expected });
        let endpoint = |name| optional(name).map(|value| Endpoint::parse(name, value)).transpose();
        let shared_endpoint = endpoint(ENDPOINT)?;
        Ok(Self {
            region: required(REGION, "a region such as eu-central-1")?,
            sqs_endpoint: endpoint(ENDPOINT_SQS)?.or_else(|| shared_endpoint.clone()),
            s3_endpoint: endpoint(ENDPOINT_S3)?.or(shared_endpoint),
            access_key: required(ACCESS_KEY, "the access key that Lambda gives")?,
            secret_key: required(SECRET_KEY, "the secret key that Lambda gives").map(Secret::new)?,
            session_token: optional(SESSION_TOKEN).map(Secret::new),
        })
    }

    pub(super) fn credentials(&self) -> Credentials {
        let token = self.session_token.as_ref().map(|token| token.expose().to_owned());
        Credentials::new(&self.access_key, self.secret_key.expose(), token, None, "environment")
    }
}

impl Endpoint {
    fn parse(name: &'static str, value: String) -> Result<Self, AwsSettingsError> {
        let is_url = value
            .parse::<Uri>()
            .is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some());
        if is_url { Ok(Self(value)) } else { Err(AwsSettingsError::Endpoint { name, value }) }
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> Self {
        endpoint.0
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAMBDA: [(&str, &str); 4] = [
        (REGION, "eu-central-1"),
        (ACCESS_KEY, "AKIAEXAMPLE"),
        (SECRET_KEY, "wJalrXUtnFEMI"),
        (SESSION_TOKEN, "IQoJb3JpZ2lu"),
    ];

    /// Reads Lambda's variables with these in front.
    fn read(variables: &[(&str, &str)]) -> Result<AwsSettings, AwsSettingsError> {
        AwsSettings::from_env(|name| {
            let mut all = variables.iter().chain(&LAMBDA);
            all.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_lambda_gives_is_enough() {
        let settings = read(&[]).unwrap();
        assert_eq!(
            (&*settings.region, settings.sqs_endpoint, settings.s3_endpoint),
            ("eu-central-1", None, None)
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let settings = read(&[]).unwrap();
        let shown = format!("{settings:?}{:?}", settings.credentials());
        assert!(shown.contains("AKIAEXAMPLE"), "{shown}");
        assert!(!shown.contains("wJalrXUtnFEMI") && !shown.contains("IQoJb3JpZ2lu"), "{shown}");
    }

    #[test]
    fn an_endpoint_is_for_both_services_unless_one_has_its_own() {
        let check = |variables: &[(&str, &str)], expected: [Option<&str>; 2]| {
            let settings = read(variables).unwrap();
            let endpoints = [settings.sqs_endpoint, settings.s3_endpoint];
            assert_eq!(
                endpoints.map(|endpoint| endpoint.map(String::from)),
                expected.map(|url| url.map(str::to_owned))
            );
        };
        let (one, other) = ("http://127.0.0.1:4566", "https://s3.test");
        check(&[(ENDPOINT, one)], [Some(one); 2]);
        check(&[(ENDPOINT, one), (ENDPOINT_S3, other)], [Some(one), Some(other)]);
        check(&[(ENDPOINT_SQS, one)], [Some(one), None]);
        check(&[(ENDPOINT, "")], [None; 2]);
    }

    #[test]
    fn an_error_names_the_variable_and_what_was_expected() {
        let check = |variables: &[(&str, &str)], expected: &str| {
            assert_eq!(read(variables).unwrap_err().to_string(), expected);
        };
        check(&[(REGION, "")], "AWS_REGION is not set, expected a region such as eu-central-1");
        check(
            &[(SECRET_KEY, "")],
            "AWS_SECRET_ACCESS_KEY is not set, expected the secret key that Lambda gives",
        );
        for bad in ["localhost:4566", "ftp://x", "http://", "127.0.0.1"] {
            let expected =
                format!("AWS_ENDPOINT_URL is {bad:?}, expected a URL such as http://127.0.0.1:4566");
            check(&[(ENDPOINT, bad)], &expected);
        }
    }
}
