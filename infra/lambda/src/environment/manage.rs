//! The environment of manage.

use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{KeyDigest, origin};
use posthaste_http::ClientSettings;
use posthaste_manage::ManageSettings;
use posthaste_settings::Values;
use posthaste_settings::table::{self, client_settings, manage_settings};

use super::common::CommonEnvironment;
use super::read::Environment;
use super::variables::{EnvironmentError, Variables};

/// The environment of manage.
#[derive(Debug, Clone)]
pub struct ManageEnvironment {
    /// The part that every function has.
    pub common: CommonEnvironment,
    /// The bucket of dead letters.
    pub dead_letter_bucket: String,
    /// The digest of the key of the management API.
    pub admin_key: KeyDigest,
    /// The URLs of publish and of manage itself, and the origin of handshakes. The template cannot give the
    /// function its own URL when it makes the function.
    pub settings: ManageSettings,
    /// Settings of the webhook client.
    pub client: ClientSettings,
    /// When endpoints that fail get no requests, and for how long.
    pub links: HealthSettings,
}

impl Environment for ManageEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            dead_letter_bucket: variables.get(&table::DEAD_LETTER_BUCKET).unwrap_or_default(),
            admin_key: variables.get(&table::ADMIN_KEY_SHA256).unwrap_or_default(),
            settings: manage_settings(&mut variables, origin::DEFAULT),
            client: client_settings(&mut variables, ClientSettings::default()),
            links: variables.link_settings(),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}
