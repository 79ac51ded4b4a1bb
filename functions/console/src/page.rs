//! A page, and the frame around every page.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::api::ApiRefusal;
use crate::assets;
use crate::console::PATH;
use crate::display::{foreign_text, visible_text};

mod foot;
mod search_box;

/// The field of a form with the token of its session.
pub(crate) const FORM_TOKEN: &str = "form";

/// The result of a handler.
pub(crate) type PageResult = Result<ConsolePage, ConsolePage>;

/// A page without its frame, which the guard adds.
#[derive(Debug, Clone)]
pub(crate) struct ConsolePage {
    status: StatusCode,
    section: Option<MenuSection>,
    title: String,
    body: Markup,
    /// The text that the page shows the hits of.
    search_text: Option<String>,
    /// Time between two refreshes of its live parts.
    refresh: Option<Duration>,
    /// Whether its visitor is signed out by it, and has no menu any more.
    signs_out: bool,
}

/// The part of a session that the frame needs.
#[derive(Debug, Clone)]
pub(crate) struct PageFrame {
    pub(crate) form_token: String,
}

/// The sections, in the order of the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MenuSection {
    Overview,
    Topics,
    Events,
    DeadLetters,
    Failing,
    Pressure,
    Work,
    Audit,
}

impl MenuSection {
    const ALL: [Self; 8] = [
        Self::Overview,
        Self::Topics,
        Self::Events,
        Self::DeadLetters,
        Self::Failing,
        Self::Pressure,
        Self::Work,
        Self::Audit,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Topics => "Topics",
            Self::Events => "Events",
            Self::DeadLetters => "Dead letters",
            Self::Failing => "Failing",
            Self::Pressure => "Pressure",
            Self::Work => "Work",
            Self::Audit => "Audit",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Overview => "",
            Self::Topics => "/topics",
            Self::Events => "/events",
            Self::DeadLetters => "/dead-letters",
            Self::Failing => "/failing",
            Self::Pressure => "/pressure",
            Self::Work => "/work",
            Self::Audit => "/audit",
        }
    }
}

impl ConsolePage {
    /// A page of this title.
    pub(crate) fn new(title: impl Into<String>, body: Markup) -> Self {
        Self {
            status: StatusCode::OK,
            section: None,
            title: title.into(),
            body,
            search_text: None,
            refresh: None,
            signs_out: false,
        }
    }

    /// The same as a page of a section.
    pub(crate) fn in_section(self, section: MenuSection) -> Self {
        Self {
            section: Some(section),
            ..self
        }
    }

    /// The same with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The same as the hits of a search for this text.
    pub(crate) fn with_search_text(self, text: &str) -> Self {
        Self {
            search_text: Some(text.to_owned()),
            ..self
        }
    }

    /// The same for a visitor who is signed out by it.
    pub(crate) fn signing_out(self) -> Self {
        Self {
            signs_out: true,
            ..self
        }
    }

    /// The page of a request that cannot be read.
    pub(crate) fn bad_request(detail: &str) -> Self {
        Self::new(
            "This address is not valid",
            html! { p { (foreign_text(detail)) } },
        )
        .with_status(StatusCode::BAD_REQUEST)
    }

    /// The whole document.
    pub(crate) fn render(&self, frame: Option<&PageFrame>) -> String {
        let frame = frame.filter(|_| !self.signs_out);
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { @if self.is_mistaken() { "Mistake: " } (visible_text(&self.title)) " · posthaste" }
                    link rel="icon" href=(assets::ICON.url()) type="image/svg+xml";
                    link rel="stylesheet" href=(assets::STYLES.url());
                    script src=(assets::SCRIPT.url()) defer {}
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    header.top {
                        a.brand href=(PATH) { "posthaste" }
                        @if let Some(frame) = frame { (self.render_menu(frame)) }
                    }
                    main #main tabindex="-1" data-refresh-seconds=[self.refresh_seconds()] {
                        h1 { (foreign_text(&self.title)) }
                        (self.body)
                    }
                    @if frame.is_some() { (foot::page_footer()) }
                }
            }
        };
        document.into_string()
    }

    /// Whether the page has a form with a mistake.
    fn is_mistaken(&self) -> bool {
        self.section.is_some() && self.status == StatusCode::BAD_REQUEST
    }

    fn refresh_seconds(&self) -> Option<u64> {
        self.refresh.map(|every| every.as_secs().max(1))
    }

    fn render_menu(&self, frame: &PageFrame) -> Markup {
        html! {
            (search_box::search_box(self.search_text.as_deref()))
            nav aria-label="Sections" {
                ul {
                    @for section in MenuSection::ALL {
                        li {
                            a href={ (PATH) (section.path()) } data-title=(section.title())
                                aria-current=[(self.section == Some(section)).then_some("page")] {
                                (section.title())
                            }
                        }
                    }
                }
            }
            (foot::refreshed_hint())
            form.sign-out method="post" action={ (PATH) "/sign-out" } {
                (form_token(&frame.form_token))
                button type="submit" { "Sign out" }
            }
        }
    }
}

impl IntoResponse for ConsolePage {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ApiRefusal> for ConsolePage {
    /// The page of a problem that the API returned.
    fn from(refusal: ApiRefusal) -> Self {
        let title = if refusal.title.is_empty() {
            "That did not work"
        } else {
            &refusal.title
        };
        let status = refusal.status_code();
        Self::new(title, problem_box(&refusal)).with_status(status)
    }
}

/// Gives a page the time between two refreshes.
pub(crate) async fn add_refresh(State(every): State<Duration>, mut response: Response) -> Response {
    if let Some(page) = response.extensions_mut().get_mut::<ConsolePage>() {
        page.refresh = Some(every);
    }
    response
}

/// A problem, as the API describes it.
pub(crate) fn problem_box(refusal: &ApiRefusal) -> Markup {
    html! {
        div.problem role="alert" tabindex="-1" autofocus {
            @if let Some(detail) = &refusal.detail {
                p {
                    @if let Some(member) = &refusal.member { code { (foreign_text(member)) } ": " }
                    (foreign_text(detail))
                }
            } @else {
                p { (foreign_text(&refusal.title)) }
            }
            @if refusal.errors.len() > 1 {
                ul {
                    @for error in &refusal.errors {
                        li { code { (foreign_text(&error.member)) } ": " (foreign_text(&error.detail)) }
                    }
                }
            }
        }
    }
}

/// The hidden field that every form has.
pub(crate) fn form_token(token: &str) -> Markup {
    html! { input type="hidden" name=(FORM_TOKEN) value=(token); }
}
