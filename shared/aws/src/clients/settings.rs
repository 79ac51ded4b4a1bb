//! Region, endpoints and credentials, read from the environment once and from nowhere else.

use aws_credential_types::Credentials;
use http::Uri;

/// Region, endpoints and credentials of one process.
///
/// Lambda puts all of them into the environment and replaces the environment before the credentials
/// expire. So there is neither a chain of providers nor a refresh here, and no request to the
/// instance metadata service.
#[derive(Debug, Clone)]
pub struct AwsSettings {
    pub(super) region: String,
    /// The http or https URL of an emulator; `None` for AWS's own.
    pub(super) sqs_endpoint: Option<String>,
    pub(super) s3_endpoint: Option<String>,
    pub(super) credentials: Credentials,
}

/// Reasons for which the environment does not say how to reach AWS.
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
    /// Reads the settings from variables, which `variable` looks up by name. An empty one counts as
    /// not set.
    pub fn from_env(variable: impl Fn(&str) -> Option<String>) -> Result<Self, AwsSettingsError> {
        let env = EnvVariables(variable);
        let shared_endpoint = env.endpoint("AWS_ENDPOINT_URL")?;
        let region = env.required("AWS_REGION", "a region such as eu-central-1")?;
        let sqs_endpoint = env
            .endpoint("AWS_ENDPOINT_URL_SQS")?
            .or_else(|| shared_endpoint.clone());
        let s3_endpoint = env.endpoint("AWS_ENDPOINT_URL_S3")?.or(shared_endpoint);
        let access_key = env.required("AWS_ACCESS_KEY_ID", "the access key that Lambda gives")?;
        let secret_key =
            env.required("AWS_SECRET_ACCESS_KEY", "the secret key that Lambda gives")?;
        let token = env.optional("AWS_SESSION_TOKEN");
        let credentials = Credentials::new(access_key, secret_key, token, None, "environment");
        Ok(Self {
            region,
            sqs_endpoint,
            s3_endpoint,
            credentials,
        })
    }
}

/// The variables of an environment, looked up by name.
struct EnvVariables<V>(V);

impl<V: Fn(&str) -> Option<String>> EnvVariables<V> {
    fn optional(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    fn required(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<String, AwsSettingsError> {
        self.optional(name)
            .ok_or(AwsSettingsError::Missing { name, expected })
    }

    fn endpoint(&self, name: &'static str) -> Result<Option<String>, AwsSettingsError> {
        self.optional(name)
            .map(|url| checked_endpoint(name, url))
            .transpose()
    }
}

fn checked_endpoint(name: &'static str, value: String) -> Result<String, AwsSettingsError> {
    let is_url = value.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some()
    });
    if is_url {
        Ok(value)
    } else {
        Err(AwsSettingsError::Endpoint { name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAMBDA: [(&str, &str); 4] = [
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI"),
        ("AWS_SESSION_TOKEN", "IQoJb3JpZ2lu"),
    ];

    /// Reads Lambda's variables with these in front.
    fn read(variables: &[(&str, &str)]) -> Result<AwsSettings, AwsSettingsError> {
        AwsSettings::from_env(|name| {
            let mut all = variables.iter().chain(&LAMBDA);
            all.find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn settings_of_lambda_are_enough() {
        let settings = read(&[]).unwrap();
        assert_eq!(
            (
                &*settings.region,
                settings.sqs_endpoint,
                settings.s3_endpoint
            ),
            ("eu-central-1", None, None)
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let settings = read(&[]).unwrap();
        let shown = format!("{settings:?}{:?}", settings.credentials);
        assert!(shown.contains("AKIAEXAMPLE"), "{shown}");
        assert!(
            !shown.contains("wJalrXUtnFEMI") && !shown.contains("IQoJb3JpZ2lu"),
            "{shown}"
        );
    }

    #[test]
    fn an_endpoint_is_for_both_services_unless_one_has_its_own() {
        let check = |variables: &[(&str, &str)], expected: [Option<&str>; 2]| {
            let settings = read(variables).unwrap();
            let endpoints = [settings.sqs_endpoint, settings.s3_endpoint];
            assert_eq!(endpoints, expected.map(|url| url.map(str::to_owned)));
        };
        let one = "http://127.0.0.1:4566";
        let other = "https://s3.test";
        check(&[("AWS_ENDPOINT_URL", one)], [Some(one); 2]);
        check(
            &[("AWS_ENDPOINT_URL", one), ("AWS_ENDPOINT_URL_S3", other)],
            [Some(one), Some(other)],
        );
        check(&[("AWS_ENDPOINT_URL_SQS", one)], [Some(one), None]);
        check(&[("AWS_ENDPOINT_URL", "")], [None; 2]);
    }

    #[test]
    fn an_error_names_the_variable_and_what_was_expected() {
        let check = |variables: &[(&str, &str)], expected: &str| {
            assert_eq!(read(variables).unwrap_err().to_string(), expected);
        };
        check(
            &[("AWS_REGION", "")],
            "AWS_REGION is not set, expected a region such as eu-central-1",
        );
        check(
            &[("AWS_SECRET_ACCESS_KEY", "")],
            "AWS_SECRET_ACCESS_KEY is not set, expected the secret key that Lambda gives",
        );
        for bad in ["localhost:4566", "ftp://x", "http://", "127.0.0.1"] {
            let expected = format!(
                "AWS_ENDPOINT_URL is {bad:?}, expected a URL such as http://127.0.0.1:4566"
            );
            check(&[("AWS_ENDPOINT_URL", bad)], &expected);
        }
    }
}
