//! Dead letters that an operator is done with: resolved or deleted, each after a dry run.

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use posthaste_core::api::ResolveResponse;
use serde_json::{Map, Value};

use super::failures::{failure_list, left_out_facts};
use super::search::DeadLetterSearch;
use crate::address::{PageAddress, page_path};
use crate::api::{ApiRefusal, ManageApi};
use crate::console::PageContext;
use crate::display::number;
use crate::extract::FormFields;
use crate::filters::hidden_fields;
use crate::page::{ConsolePage, MenuSection, form_token, problem_box};
use crate::parts::address_after;
use crate::uncertain::{failure_title, uncertainty_hint};
use crate::visit::PageVisit;

/// The field, and its value, of the form that acts.
const STEP: (&str, &str) = ("step", "act");

/// An end of dead letters, in words.
#[derive(Debug, Clone, Copy)]
struct EndingWords {
    verb: &'static str,
    done: &'static str,
}

const RESOLVE: EndingWords = EndingWords {
    verb: "resolve",
    done: "resolved",
};
const DELETE: EndingWords = EndingWords {
    verb: "delete",
    done: "deleted",
};

/// The request of a form.
struct EndingForm {
    end: EndingWords,
    is_dry_run: bool,
    search: DeadLetterSearch,
    include_former: bool,
}

/// Shows what to resolve or, in the second step, resolves it.
pub(crate) async fn resolve(
    pages: PageContext,
    visit: PageVisit,
    fields: FormFields,
) -> Result<Response, ConsolePage> {
    end_letters(&pages.api, &visit, &fields, RESOLVE).await
}

/// Shows what to delete or, in the second step, deletes it.
pub(crate) async fn delete(
    pages: PageContext,
    visit: PageVisit,
    fields: FormFields,
) -> Result<Response, ConsolePage> {
    end_letters(&pages.api, &visit, &fields, DELETE).await
}

async fn end_letters(
    api: &ManageApi,
    visit: &PageVisit,
    fields: &FormFields,
    end: EndingWords,
) -> Result<Response, ConsolePage> {
    let is_dry_run = fields.get(STEP.0) != STEP.1;
    let search = DeadLetterSearch::from_form(fields);
    let asked = EndingForm {
        end,
        is_dry_run,
        search: if is_dry_run {
            search.frozen_at(visit.now)
        } else {
            search
        },
        include_former: fields.get("includeFormer") == "true",
    };
    let Some(target) = asked.search.action_target(asked.end.verb) else {
        return Err(asked.refused_page(&ApiRefusal::default()));
    };
    let sent = api
        .send_json::<ResolveResponse>(Method::POST, target, None, &asked.request_body())
        .await;
    let answer = sent.map_err(|refusal| asked.refused_page(&refusal))?.body;
    if is_dry_run {
        return Ok(asked.preview_page(&answer, visit).into_response());
    }
    let is_long = answer.in_progress || answer.cursor.is_some();
    if let Some(id) = answer.id.as_deref().filter(|_| is_long) {
        return Ok(Redirect::to(&page_path(&["work", id])).into_response());
    }
    if !answer.failures.is_empty() {
        return Ok(asked.partial_page(&answer).into_response());
    }
    let list = asked.search.page_after_action();
    Ok(Redirect::to(&address_after(&list, end.done, visit.now)).into_response())
}

impl EndingForm {
    fn request_body(&self) -> Map<String, Value> {
        let mut body = self.search.request_body();
        body.insert("dryRun".to_owned(), self.is_dry_run.into());
        body.insert("includeFormer".to_owned(), self.include_former.into());
        body
    }

    fn preview_page(&self, answer: &ResolveResponse, visit: &PageVisit) -> ConsolePage {
        let at_least = if answer.cursor.is_some() {
            "at least "
        } else {
            ""
        };
        let title = format!("{}: dry run", self.title());
        let body = html! {
            p {
                "Of " (self.search.owner_text()) ", " (at_least) strong { (number(answer.events)) }
                " dead letters would be " (self.end.done) "."
            }
            (self.count_facts(answer))
            (self.search.until_hint())
            div.actions {
                @if answer.events > 0 {
                    (self.action_form(visit, &format!("{} these dead letters", self.title())))
                }
                (self.search.back_link())
            }
            @if answer.events == 0 {
                p.empty { "There is nothing to " (self.end.verb) ". Change the filters." }
            }
        };
        ConsolePage::new(title, body).in_section(MenuSection::DeadLetters)
    }

    /// The page of a request that came to the end, but not without failures.
    fn partial_page(&self, answer: &ResolveResponse) -> ConsolePage {
        let body = html! {
            p.done role="status" { (number(answer.events)) " dead letters were " (self.end.done) "." }
            (self.count_facts(answer))
            div.actions { (self.search.back_link()) }
        };
        ConsolePage::new(self.title(), body).in_section(MenuSection::DeadLetters)
    }

    fn count_facts(&self, answer: &ResolveResponse) -> Markup {
        html! {
            dl.facts {
                dt { "Left out because they are resolved already" }
                dd { (number(answer.resolved)) }
                (left_out_facts(&answer.left_out))
                dt { "Cannot be read" }
                dd { (number(answer.failed)) }
            }
            @if self.end.done == DELETE.done {
                p.hint { "A dead letter that is stored with others that stay is resolved instead." }
            }
            (failure_list(&answer.failures, "What cannot be read"))
        }
    }

    fn action_form(&self, visit: &PageVisit, text: &str) -> Markup {
        let class = if self.end.done == DELETE.done {
            "danger"
        } else {
            "primary"
        };
        let former = self.include_former.then_some("true");
        let more = [("includeFormer", former), (STEP.0, Some(STEP.1))];
        html! {
            form method="post" action=(PageAddress::new(&["dead-letters", self.end.verb])) {
                (form_token(&visit.form_token))
                (hidden_fields(&self.search.hidden_fields()))
                (hidden_fields(&more))
                button class=(class) type="submit" { (text) }
            }
        }
    }

    fn title(&self) -> &'static str {
        if self.end.done == DELETE.done {
            "Delete"
        } else {
            "Resolve"
        }
    }

    fn done_clause(&self) -> &'static str {
        if self.end.done == DELETE.done {
            "dead letters were deleted"
        } else {
            "dead letters were resolved"
        }
    }

    fn refused_page(&self, refusal: &ApiRefusal) -> ConsolePage {
        let list = self.search.page_after_action();
        let body = html! {
            @if let Some(missing) = self.search.missing_text() {
                p { (missing) }
            } @else {
                (problem_box(refusal))
                @if !self.is_dry_run { (uncertainty_hint(refusal, self.done_clause(), &list, "the dead letters")) }
            }
            p { (self.search.back_link()) }
        };
        let status = if refusal.status == 0 {
            StatusCode::BAD_REQUEST
        } else {
            refusal.status_code()
        };
        let unchanged = "Nothing was changed";
        let title = if self.is_dry_run {
            unchanged
        } else {
            failure_title(refusal, unchanged)
        };
        ConsolePage::new(title, body)
            .in_section(MenuSection::DeadLetters)
            .with_status(status)
    }
}
