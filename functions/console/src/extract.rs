//! The query, the path and the form of a request.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use crate::page::ConsolePage;

/// Most fields of a form: far more than any page has.
const FIELDS_MAX: usize = 1_000;

/// The query of a page. Parameters that no page knows are left alone, and one that cannot be read
/// is an error.
pub(crate) struct PageQuery<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for PageQuery<T> {
    type Rejection = ConsolePage;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ConsolePage> {
        // A form sends empty fields too.
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let mut written = form_urlencoded::Serializer::new(String::new());
        written.extend_pairs(pairs.filter(|(_, value)| !value.is_empty()));
        serde_urlencoded::from_str::<T>(&written.finish())
            .map(Self)
            .map_err(|error| ConsolePage::bad_request(&error.to_string()))
    }
}

/// The parts of the path, in their order.
pub(crate) struct PathParts<const PARTS: usize>(pub(crate) [String; PARTS]);

impl<S: Send + Sync, const PARTS: usize> FromRequestParts<S> for PathParts<PARTS> {
    type Rejection = ConsolePage;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ConsolePage> {
        let path = RawPathParams::from_request_parts(parts, state).await;
        let path = path.map_err(|rejection| ConsolePage::bad_request(&rejection.body_text()))?;
        let parts: Vec<_> = path.iter().map(|(_, text)| text.to_owned()).collect();
        parts
            .try_into()
            .map(Self)
            .map_err(|_| ConsolePage::bad_request("the path has other parts"))
    }
}

/// The fields of a form that a page of this session sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct FormFields(Arc<[(String, String)]>);

impl FormFields {
    /// Reads the body of a form. `None` if it has too many fields.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let fields: Arc<[_]> = form_urlencoded::parse(body)
            .into_owned()
            .take(FIELDS_MAX + 1)
            .collect();
        (fields.len() <= FIELDS_MAX).then_some(Self(fields))
    }

    /// The value of a field; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.values(name).next().unwrap_or_default()
    }

    /// The value of a field; `None` if it is empty or missing.
    pub(crate) fn get_filled(&self, name: &str) -> Option<String> {
        Some(self.get(name))
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
    }

    /// The values of fields of one name, such as ticked boxes.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    }
}

impl<S: Sync> FromRequestParts<S> for FormFields {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // The guard has read the form of every POST.
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}
