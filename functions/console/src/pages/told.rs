//! The receivers of notices when something fails: the notices topic of each topic, and the
//! subscriptions that get what comes there.

use std::collections::{BTreeMap, BTreeSet};

use axum::routing::get;
use futures_util::future::{join, join_all};
use maud::{Markup, html};
use posthaste_core::api::{
    PressureView, StatusState, SubscriptionSettings, TopicPage, TopicSettings, TopicSummary,
};
use posthaste_core::model::{EndpointUrl, SubscriptionName, TopicName};
use serde::Deserialize;

use crate::address::{PageAddress, subscription_path, topic_path};
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::console::{PageContext, PageRoutes};
use crate::display::foreign_text;
use crate::extract::PageQuery;
use crate::filters::{ROWS_MAX, list_pager};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;

/// The columns.
const COLUMNS: [TableColumn; 3] = [
    Text("Topic"),
    Text("Its notices go to"),
    Text("Who gets them"),
];

/// Most notices topics that are read for a page. Installations have one or a few.
const RECEIVERS_MAX: usize = 20;

/// Most subscriptions of a notices topic that are named in a row.
const NAMED_MAX: usize = 5;

/// The query of the page.
#[derive(Debug, Default, Deserialize)]
struct ToldQuery {
    cursor: Option<String>,
}

/// The notices topics of a page.
struct NoticesTopics {
    /// The installation's own topic, if it has one.
    of_all: Result<Option<TopicName>, ApiRefusal>,
    /// The settings that were read of each, by their folded names.
    read: BTreeMap<String, Result<TopicSettings, ApiRefusal>>,
}

/// The route of the page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/told", get(show_page))
}

/// The page.
async fn show_page(pages: PageContext, PageQuery(query): PageQuery<ToldQuery>) -> PageResult {
    let target = RequestTarget::new(&["topics"])
        .query("settings", Some(true))
        .query("limit", Some(ROWS_MAX))
        .query("cursor", query.cursor.as_deref());
    let pressure = pages
        .api
        .get::<PressureView>(RequestTarget::new(&["pressure"]));
    let (page, pressure) = join(pages.api.get::<TopicPage>(target), pressure).await;
    let page = page?;
    let of_all = pressure.map(|view| view.notices_topic);
    let notices = NoticesTopics::load(&pages.api, &page, of_all).await;
    let rows = page.topics.iter().map(|topic| topic_row(topic, &notices));
    let list = PageAddress::new(&["told"]);
    let body = html! {
        p {
            "When a subscription is failing or healthy again, one notice goes to the notices topic of its topic, and from \
             there to whoever subscribes to it. The installation's own topic gets all of them, and notices about back \
             pressure."
        }
        (notices.of_all_facts())
        @if page.topics.is_empty() {
            p.empty { "There are no topics." }
        } @else {
            (data_table("Who is told", &COLUMNS, rows))
        }
        (list_pager(&list, query.cursor.as_deref(), page.cursor.as_deref()))
    };
    Ok(ConsolePage::new("Who is told?", body).in_section(MenuSection::Overview))
}

impl NoticesTopics {
    /// Loads the installation's topic, and those that these topics name.
    async fn load(
        api: &ManageApi,
        page: &TopicPage,
        of_all: Result<Option<TopicName>, ApiRefusal>,
    ) -> Self {
        let first = of_all.as_ref().ok().and_then(Option::as_ref);
        let first = first.map(TopicName::folded);
        let own: BTreeSet<_> = page
            .topics
            .iter()
            .filter_map(notices_topic)
            .map(TopicName::folded)
            .filter(|name| Some(name) != first.as_ref())
            .collect();
        let names = first.into_iter().chain(own).take(RECEIVERS_MAX);
        let reads = names.map(async |name| {
            let read = api.get(RequestTarget::new(&["topics", &name])).await;
            (name, read)
        });
        let read = join_all(reads).await.into_iter().collect();
        Self { of_all, read }
    }

    /// The installation's topic, and who gets what comes there.
    fn of_all_facts(&self) -> Markup {
        html! {
            dl.facts {
                dt { "The installation's topic" }
                dd {
                    @match &self.of_all {
                        Ok(Some(to)) => a href=(topic_path(to.as_str(), &[])) { (to) },
                        Ok(None) => {
                            "none: " code { "serve --notices-topic" } " sets it, on AWS the parameter "
                            code { "NoticesTopic" }
                        }
                        Err(_) => "cannot be read at the moment",
                    }
                }
                @if let Ok(Some(to)) = &self.of_all {
                    dt { "Who gets them" }
                    dd { (self.told_by(to)) }
                }
            }
        }
    }

    /// The receivers of what comes to this topic.
    fn told_by(&self, to: &TopicName) -> Markup {
        match self.read.get(&to.folded()) {
            Some(Ok(settings)) => receivers(to, settings),
            Some(Err(refusal)) if refusal.status == 404 => {
                html! { span.bad { "nobody: there is no such topic" } }
            }
            Some(Err(_)) => html! { "cannot be read at the moment" },
            None => html! { "see the topic" },
        }
    }

    /// The receivers for a topic that names no topic of its own.
    fn told_without_own(&self) -> Markup {
        match &self.of_all {
            Ok(Some(_)) => html! { "only who subscribes to the installation's topic" },
            Ok(None) => html! { span.bad { "nobody" } },
            Err(_) => html! { "cannot be read at the moment" },
        }
    }
}

fn notices_topic(topic: &TopicSummary) -> Option<&TopicName> {
    topic.settings.as_ref()?.notices_topic.as_ref()
}

fn topic_row(topic: &TopicSummary, notices: &NoticesTopics) -> [Markup; 3] {
    let name = topic.name.as_str();
    let to = notices_topic(topic);
    [
        html! { a href=(topic_path(name, &[])) { (name) } },
        html! {
            @match (to, &topic.settings) {
                (Some(to), _) => a href=(topic_path(to.as_str(), &[])) { (to) },
                (None, Some(_)) => { "no topic of its own" },
                (None, None) => { "its settings are too long to be shown here" },
            }
        },
        match to {
            Some(to) => notices.told_by(to),
            None => notices.told_without_own(),
        },
    ]
}

/// The subscriptions that get what comes to a notices topic.
fn receivers(topic: &TopicName, settings: &TopicSettings) -> Markup {
    let topic = settings.name.as_ref().unwrap_or(topic);
    let active: Vec<_> = settings
        .subscriptions
        .iter()
        .filter(|(_, subscription)| is_active(subscription))
        .collect();
    let more = active.len().saturating_sub(NAMED_MAX);
    html! {
        @if active.is_empty() {
            span.bad { "nobody: the topic has no active subscription" }
        }
        @for (name, subscription) in active.iter().take(NAMED_MAX) {
            (receiver(topic, name, subscription)) br;
        }
        @if more > 0 { a href=(topic_path(topic.as_str(), &[])) { "and " (more) " more" } }
    }
}

fn receiver(
    topic: &TopicName,
    name: &SubscriptionName,
    subscription: &SubscriptionSettings,
) -> Markup {
    let host = EndpointUrl::parse(&subscription.endpoint.url).ok();
    let host = host.map(|url| url.link().to_string());
    html! {
        a href=(subscription_path(topic.as_str(), name.as_str(), &[])) { (name) }
        @if let Some(host) = host { " " span.hint { (foreign_text(&host)) } }
    }
}

fn is_active(subscription: &SubscriptionSettings) -> bool {
    subscription
        .status
        .as_ref()
        .is_none_or(|status| status.state == StatusState::Active)
}
