//! The subscriptions that a user finds by their names or the URLs of their endpoints, in any topic.

mod finder;
mod search;

use axum::extract::State;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{FoundSubscriptions, UrlSearch};
use posthaste_core::model::{NAME_BYTES_MAX, URL_BYTES_MAX};
use posthaste_ports::Ports;
use serde::Deserialize;

use self::finder::SubscriptionFinder;
use self::search::SubscriptionSearch;
use crate::answer::{ApiResult, JsonResponse};
use crate::document::{BadRequests, Problems};
use crate::extract::Query;
use crate::paging::PageRequest;

/// The query of subscriptions of every topic.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FindSubscriptionsQuery {
    /// Only subscriptions whose names begin like this, in any case.
    name: Option<String>,
    /// Only subscriptions whose endpoint, or its fallback, has this host, is below this domain, or
    /// has a URL that begins like this. The query of a URL does not count.
    #[param(example = "billing.example.com")]
    url: Option<String>,
    /// Most items on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page begins, as the page before gave it.
    cursor: Option<String>,
}

/// Find subscriptions of any topic
///
/// By the beginnings of their names, by the URLs of their endpoints, or both. URLs are shown
/// without their queries. A search ends after two seconds, or at a topic that the store does not
/// give; the note then says that not every topic was searched, and it goes on with the cursor.
#[utoipa::path(get, path = "/subscriptions", tag = "subscriptions", params(FindSubscriptionsQuery),
    responses((status = 200, description = "One page of subscriptions", body = FoundSubscriptions),
        BadRequests, Problems))]
pub(crate) async fn find_subscriptions<P: Ports>(
    State(finder): State<SubscriptionFinder<P>>,
    Query(query): Query<FindSubscriptionsQuery>,
) -> ApiResult<FoundSubscriptions> {
    let search = query.to_search()?;
    let found = finder.find_subscriptions(&search).await?;
    Ok(JsonResponse::new(found))
}

impl FindSubscriptionsQuery {
    fn to_search(&self) -> Result<SubscriptionSearch, ApiProblem> {
        let PageRequest { items, after } = PageRequest::parse(self.limit, self.cursor.as_deref())?;
        SubscriptionSearch {
            name: self.name.as_deref().map(read_name).transpose()?,
            url: self.url.as_deref().map(read_url).transpose()?,
            limit: items,
            ..SubscriptionSearch::default()
        }
        .after(after)
    }
}

/// The beginning of names, in lower case.
fn read_name(text: &str) -> Result<String, ApiProblem> {
    let is_of_names = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_of_names && !text.is_empty() && text.len() <= NAME_BYTES_MAX {
        return Ok(text.to_ascii_lowercase());
    }
    Err(bad_parameter(
        "name",
        &format!(
            "expected 1 to {NAME_BYTES_MAX} letters, digits and hyphens, as in the names of \
             subscriptions"
        ),
    ))
}

fn read_url(text: &str) -> Result<UrlSearch, ApiProblem> {
    let search = UrlSearch::parse(text).filter(|_| text.len() <= URL_BYTES_MAX);
    search.ok_or_else(|| {
        let detail = "expected a host, or the beginning of a URL with its host";
        bad_parameter(
            "url",
            &format!("{detail}, of at most {URL_BYTES_MAX} bytes"),
        )
    })
}

fn bad_parameter(name: &str, detail: &str) -> ApiProblem {
    ApiProblem::new(ProblemKind::BadRequest)
        .member(name)
        .detail(detail)
}
