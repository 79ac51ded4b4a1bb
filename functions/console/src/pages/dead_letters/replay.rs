//! A replay of a subscription's dead letters: first what it would send, then its start.

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use posthaste_core::api::{ReplayPreview, ReplayView};
use serde_json::{Map, Value};

use super::failures::{failures, left_out};
use super::search::DeadLetterSearch;
use crate::address::Address;
use crate::api::{Refusal, Target};
use crate::asked::Fields;
use crate::console::Pages;
use crate::doubt::{hint, title};
use crate::filters::hidden;
use crate::page::{Page, Section, form_token, problem};
use crate::parts::after;
use crate::shown::{CELL_CHARS_MAX, foreign, foreign_cut, number};
use crate::visit::Visit;

/// The field, and its value, of the form that starts a replay.
const STEP: (&str, &str) = ("step", "start");

/// The request of a form.
struct Asked {
    is_dry_run: bool,
    search: DeadLetterSearch,
    rate: String,
    include_former: bool,
}

/// Shows what the replay would send or, in the second step, starts it.
pub(crate) async fn replay(pages: Pages, visit: Visit, fields: Fields) -> Result<Response, Page> {
    let asked = Asked::of(&fields, &visit);
    let Some(target) = asked.target() else {
        return Err(asked.refused(&Refusal::default()));
    };
    if !asked.is_dry_run {
        let sent = pages
            .api
            .send::<ReplayView>(Method::POST, target, None, &asked.body())
            .await;
        let view = sent.map_err(|refusal| asked.refused(&refusal))?.body;
        let address = Address::new(&["replays", &view.id]).to_string();
        return Ok(Redirect::to(&after(&address, "started", visit.now)).into_response());
    }
    let sent = pages
        .api
        .send::<ReplayPreview>(Method::POST, target, None, &asked.body())
        .await;
    let preview = sent.map_err(|refusal| asked.refused(&refusal))?.body;
    Ok(asked.preview(&preview, &visit).into_response())
}

impl Asked {
    fn of(fields: &Fields, visit: &Visit) -> Self {
        let is_dry_run = fields.get(STEP.0) != STEP.1;
        let search = DeadLetterSearch::of(fields);
        let search = if is_dry_run {
            search.until(visit.now)
        } else {
            search
        };
        let rate = fields.get("ratePerSecond").trim().to_owned();
        let include_former = fields.get("includeFormer") == "true";
        Self {
            is_dry_run,
            search,
            rate,
            include_former,
        }
    }

    fn target(&self) -> Option<Target> {
        let (topic, name) = self.search.owner()?;
        Some(Target::new(&[
            "topics",
            topic,
            "subscriptions",
            name,
            "dead-letters",
            "replay",
        ]))
    }

    fn body(&self) -> Map<String, Value> {
        let mut body = self.search.body();
        body.insert("dryRun".to_owned(), self.is_dry_run.into());
        body.insert("includeFormer".to_owned(), self.include_former.into());
        body.insert(
            "includeResolved".to_owned(),
            self.search.include_resolved.into(),
        );
        if !self.rate.is_empty() {
            // A rate that is no number stays a text, which the API refuses by name.
            let rate = self
                .rate
                .parse::<u64>()
                .map_or_else(|_| Value::from(self.rate.as_str()), Value::from);
            body.insert("ratePerSecond".to_owned(), rate);
        }
        body
    }

    fn preview(&self, preview: &ReplayPreview, visit: &Visit) -> Page {
        let at_least = if preview.is_complete { "" } else { "at least " };
        let body = html! {
            p {
                "The replay to " (self.owner()) " would send " (at_least)
                strong { (number(preview.events)) } " events, at " (self.rate_text()) "."
            }
            (counts(preview))
            (failures(&preview.failures, "Events that cannot be sent again"))
            (self.search.until_hint())
            div.actions {
                @if preview.events > 0 { (self.start_form(visit)) }
                a.button href=(self.search.address(None)) { "Back to the dead letters" }
            }
            @if preview.events == 0 { p.empty { "There is nothing to send. Change the filters." } }
        };
        Page::new("Replay: dry run", body).of(Section::DeadLetters)
    }

    fn owner(&self) -> Markup {
        let (topic, name) = self.search.owner().unwrap_or_default();
        html! { (foreign(topic)) " / " (foreign(name)) }
    }

    fn rate_text(&self) -> Markup {
        html! {
            @if self.rate.is_empty() { "100" } @else { (foreign(&self.rate)) }
            " events per second"
        }
    }

    fn start_form(&self, visit: &Visit) -> Markup {
        let former = self.include_former.then_some("true");
        let more = [
            ("ratePerSecond", Some(self.rate.as_str())),
            ("includeFormer", former),
            (STEP.0, Some(STEP.1)),
        ];
        html! {
            form method="post" action=(Address::new(&["dead-letters", "replay"])) {
                (form_token(&visit.form_token))
                (hidden(&self.search.hidden()))
                (hidden(&more))
                button.primary type="submit" { "Start the replay" }
            }
        }
    }

    fn refused(&self, refusal: &Refusal) -> Page {
        let replays = Address::new(&["replays"]).to_string();
        let body = html! {
            @if self.search.owner().is_some() {
                (problem(refusal))
                @if !self.is_dry_run { (hint(refusal, "the replay is stored", &replays, "the replays")) }
            } @else {
                p { "A replay needs a topic and a subscription." }
            }
            p { a.button href=(self.search.address(None)) { "Back to the dead letters" } }
        };
        let status = if refusal.status == 0 {
            StatusCode::BAD_REQUEST
        } else {
            refusal.status()
        };
        let none = "There is no replay";
        let title = if self.is_dry_run {
            none
        } else {
            title(refusal, none)
        };
        Page::new(title, body)
            .of(Section::DeadLetters)
            .with_status(status)
    }
}

fn counts(preview: &ReplayPreview) -> Markup {
    html! {
        dl.facts {
            dt { "Objects with these events" }
            dd { (number(preview.objects)) }
            @for (reason, events) in &preview.by_reason {
                dt { "Reason " (foreign_cut(reason, CELL_CHARS_MAX)) }
                dd { (number(*events)) }
            }
            dt { "Left out because they are resolved" }
            dd { (number(preview.resolved)) }
            (left_out(&preview.left_out))
            dt { "Cannot be sent again" }
            dd { (number(preview.failed)) }
            @if !preview.ids.is_empty() {
                dt { "The first ids" }
                dd {
                    @for (at, id) in preview.ids.iter().enumerate() {
                        @if at > 0 { ", " }
                        (foreign_cut(id, CELL_CHARS_MAX))
                    }
                }
            }
        }
    }
}
