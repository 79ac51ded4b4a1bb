//! A replay of a subscription's dead letters: first what it would send, then its start.

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use posthaste_core::api::{ReplayPreview, ReplayView};
use serde_json::{Map, Value};

use super::failures::{failure_list, left_out_facts};
use super::replay_source::ReplaySourceFields;
use super::search::DeadLetterSearch;
use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi};
use crate::console::PageContext;
use crate::display::{CELL_CHARS_MAX, foreign_cut, foreign_text, number};
use crate::extract::FormFields;
use crate::filters::hidden_fields;
use crate::page::{ConsolePage, MenuSection, form_token, problem_box};
use crate::parts::address_after;
use crate::uncertain::{failure_title, uncertainty_hint};
use crate::visit::PageVisit;

/// The field, and its value, of the form that starts a replay.
const STEP: (&str, &str) = ("step", "start");

/// The request of a form.
pub(super) struct ReplayForm {
    is_dry_run: bool,
    search: DeadLetterSearch,
    rate: String,
    include_former: bool,
    source: ReplaySourceFields,
}

/// Shows what the replay would send or, in the second step, starts it.
pub(crate) async fn submit_replay(
    pages: PageContext,
    visit: PageVisit,
    fields: FormFields,
) -> Result<Response, ConsolePage> {
    let asked = ReplayForm::from_form(&fields, &visit);
    if !asked.is_dry_run {
        let Some(target) = asked.search.action_target("replay") else {
            return Err(asked.refused_page(&ApiRefusal::default()));
        };
        let sent = pages
            .api
            .send_json::<ReplayView>(Method::POST, target, None, &asked.request_body())
            .await;
        let view = sent.map_err(|refusal| asked.refused_page(&refusal))?.body;
        let address = PageAddress::new(&["replays", &view.id]).to_string();
        return Ok(Redirect::to(&address_after(&address, "started", visit.now)).into_response());
    }
    let preview = asked.load_preview(&pages.api).await;
    let preview = preview.map_err(|refusal| asked.refused_page(&refusal))?;
    Ok(asked.preview_page(&preview, &visit).into_response())
}

impl ReplayForm {
    pub(super) fn from_form(fields: &FormFields, visit: &PageVisit) -> Self {
        let is_dry_run = fields.get(STEP.0) != STEP.1;
        let search = DeadLetterSearch::from_form(fields);
        let search = if is_dry_run {
            search.frozen_at(visit.now)
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
            source: ReplaySourceFields::from_form(fields),
        }
    }

    fn request_body(&self) -> Map<String, Value> {
        let mut body = self.search.request_body();
        body.insert("dryRun".to_owned(), self.is_dry_run.into());
        body.insert("includeFormer".to_owned(), self.include_former.into());
        body.insert(
            "includeResolved".to_owned(),
            self.search.include_resolved.into(),
        );
        self.source.write_to(&mut body);
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

    /// Loads what the replay would send.
    pub(super) async fn load_preview(&self, api: &ManageApi) -> Result<ReplayPreview, ApiRefusal> {
        let target = self.search.action_target("replay");
        let target = target.ok_or_else(ApiRefusal::default)?;
        let mut body = self.request_body();
        body.insert("dryRun".to_owned(), true.into());
        let sent = api.send_json::<ReplayPreview>(Method::POST, target, None, &body);
        Ok(sent.await?.body)
    }

    fn preview_page(&self, preview: &ReplayPreview, visit: &PageVisit) -> ConsolePage {
        let body = html! {
            (self.preview_part(preview, visit, &self.search.back_link()))
            @if is_empty(preview) { p.empty { "There is nothing to send. Change the filters." } }
        };
        ConsolePage::new("Replay: dry run", body).in_section(MenuSection::DeadLetters)
    }

    /// The events that the replay would send, with the button that starts it, and others.
    pub(super) fn preview_part(
        &self,
        preview: &ReplayPreview,
        visit: &PageVisit,
        others: &Markup,
    ) -> Markup {
        let at_least = if preview.is_complete { "" } else { "at least " };
        html! {
            p {
                "The replay to " (self.search.owner_text()) " would send " (at_least)
                strong { (number(preview.events)) } " events"
                @if self.source.is_log() { " of the delivery log" }
                ", at " (self.rate_text()) "."
            }
            @if preview.events == 0 && !preview.is_complete {
                p { "None was found in the part that there was time to count. The replay looks through all of it." }
            }
            (count_facts(preview, self.source.is_log()))
            (failure_list(&preview.failures, "Events that cannot be sent again"))
            (self.search.until_hint())
            div.actions {
                @if !is_empty(preview) { (self.start_form(visit)) }
                (others)
            }
        }
    }

    fn rate_text(&self) -> Markup {
        html! {
            @if self.rate.is_empty() { "100" } @else { (foreign_text(&self.rate)) }
            " events per second"
        }
    }

    fn start_form(&self, visit: &PageVisit) -> Markup {
        let former = self.include_former.then_some("true");
        let more = [
            ("ratePerSecond", Some(self.rate.as_str())),
            ("includeFormer", former),
            (STEP.0, Some(STEP.1)),
        ];
        html! {
            form method="post" action=(PageAddress::new(&["dead-letters", "replay"])) {
                (form_token(&visit.form_token))
                (hidden_fields(&self.search.hidden_fields()))
                (hidden_fields(&self.source.hidden_fields()))
                (hidden_fields(&more))
                button.primary type="submit" { "Start the replay" }
            }
        }
    }

    fn refused_page(&self, refusal: &ApiRefusal) -> ConsolePage {
        let replays = PageAddress::new(&["replays"]).to_string();
        let body = html! {
            @if let Some(missing) = self.search.missing_text() {
                p { (missing) }
            } @else {
                (problem_box(refusal))
                @if !self.is_dry_run { (uncertainty_hint(refusal, "the replay is stored", &replays, "the replays")) }
            }
            p { (self.search.back_link()) }
        };
        let status = if refusal.status == 0 {
            StatusCode::BAD_REQUEST
        } else {
            refusal.status_code()
        };
        let none = "There is no replay";
        let title = if self.is_dry_run {
            none
        } else {
            failure_title(refusal, none)
        };
        ConsolePage::new(title, body)
            .in_section(MenuSection::DeadLetters)
            .with_status(status)
    }
}

/// Whether a replay would send nothing, as far as all could be counted.
pub(super) fn is_empty(preview: &ReplayPreview) -> bool {
    preview.events == 0 && preview.is_complete
}

fn count_facts(preview: &ReplayPreview, is_of_log: bool) -> Markup {
    html! {
        dl.facts {
            @for (reason, events) in &preview.by_reason {
                dt { "Reason " (foreign_cut(reason, CELL_CHARS_MAX)) }
                dd { (number(*events)) }
            }
            dt { "Left out because they are resolved" }
            dd { @if is_of_log { "when it runs, not counted here" } @else { (number(preview.resolved)) } }
            (left_out_facts(&preview.left_out))
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
