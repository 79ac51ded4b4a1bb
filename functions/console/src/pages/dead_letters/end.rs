//! Dead letters that an operator is done with: resolved or deleted, each after a dry run.

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use posthaste_core::api::ResolveResponse;
use serde_json::{Map, Value};

use super::failures::{failures, left_out};
use super::search::DeadLetterSearch;
use crate::address::Address;
use crate::api::{Api, Refusal, Target};
use crate::asked::Fields;
use crate::console::Pages;
use crate::doubt::{hint, title};
use crate::filters::hidden;
use crate::page::{Page, Section, form_token, problem};
use crate::parts::after;
use crate::shown::{foreign, number};
use crate::visit::Visit;

/// The field, and its value, of the form that acts.
const STEP: (&str, &str) = ("step", "act");

/// An end of dead letters, in words.
#[derive(Debug, Clone, Copy)]
struct End {
    verb: &'static str,
    done: &'static str,
}

const RESOLVE: End = End {
    verb: "resolve",
    done: "resolved",
};
const DELETE: End = End {
    verb: "delete",
    done: "deleted",
};

/// The request of a form.
struct Asked {
    end: End,
    is_dry_run: bool,
    search: DeadLetterSearch,
    include_former: bool,
    /// The place where an earlier request stopped.
    cursor: String,
}

/// Shows what to resolve or, in the second step, resolves it.
pub(crate) async fn resolve(pages: Pages, visit: Visit, fields: Fields) -> Result<Response, Page> {
    act(&pages.api, &visit, &fields, RESOLVE).await
}

/// Shows what to delete or, in the second step, deletes it.
pub(crate) async fn delete(pages: Pages, visit: Visit, fields: Fields) -> Result<Response, Page> {
    act(&pages.api, &visit, &fields, DELETE).await
}

async fn act(api: &Api, visit: &Visit, fields: &Fields, end: End) -> Result<Response, Page> {
    let is_dry_run = fields.get(STEP.0) != STEP.1;
    let search = DeadLetterSearch::of(fields);
    let asked = Asked {
        end,
        is_dry_run,
        search: if is_dry_run {
            search.until(visit.now)
        } else {
            search
        },
        include_former: fields.get("includeFormer") == "true",
        cursor: fields.get("cursor").to_owned(),
    };
    let Some(target) = asked.target() else {
        return Err(asked.refused(&Refusal::default()));
    };
    let sent = api
        .send::<ResolveResponse>(Method::POST, target, None, &asked.body())
        .await;
    let answer = sent.map_err(|refusal| asked.refused(&refusal))?.body;
    if is_dry_run {
        return Ok(asked.preview(&answer, visit).into_response());
    }
    if answer.in_progress || answer.cursor.is_some() || !answer.failures.is_empty() {
        return Ok(asked.so_far(&answer, visit).into_response());
    }
    let list = asked.search.address(None).to_string();
    Ok(Redirect::to(&after(&list, end.done, visit.now)).into_response())
}

impl Asked {
    fn target(&self) -> Option<Target> {
        let (topic, name) = self.search.owner()?;
        Some(Target::new(&[
            "topics",
            topic,
            "subscriptions",
            name,
            "dead-letters",
            self.end.verb,
        ]))
    }

    fn body(&self) -> Map<String, Value> {
        let mut body = self.search.body();
        body.insert("dryRun".to_owned(), self.is_dry_run.into());
        body.insert("includeFormer".to_owned(), self.include_former.into());
        if !self.cursor.is_empty() {
            body.insert("cursor".to_owned(), self.cursor.as_str().into());
        }
        body
    }

    fn preview(&self, answer: &ResolveResponse, visit: &Visit) -> Page {
        let at_least = if answer.cursor.is_some() {
            "at least "
        } else {
            ""
        };
        let title = format!("{}: dry run", self.title());
        let body = html! {
            p {
                "Of " (self.owner()) ", " (at_least) strong { (number(answer.events)) }
                " dead letters would be " (self.end.done) "."
            }
            (self.counts(answer))
            (self.search.until_hint())
            div.actions {
                @if answer.events > 0 {
                    (self.form(visit, None, &format!("{} these dead letters", self.title())))
                }
                (self.back())
            }
            @if answer.events == 0 {
                p.empty { "There is nothing to " (self.end.verb) ". Change the filters." }
            }
        };
        Page::new(title, body).of(Section::DeadLetters)
    }

    /// The page of a request that did not come to the end, or not without failures.
    fn so_far(&self, answer: &ResolveResponse, visit: &Visit) -> Page {
        let body = html! {
            p.done role="status" {
                @if answer.in_progress {
                    "Another request does the same now, and goes on until all of it is done."
                } @else {
                    (number(answer.events)) " dead letters were " (self.end.done) "."
                }
            }
            (self.counts(answer))
            div.actions {
                @if let Some(cursor) = &answer.cursor {
                    (self.form(visit, Some(cursor), "Continue with the rest"))
                }
                (self.back())
            }
        };
        Page::new(self.title(), body).of(Section::DeadLetters)
    }

    fn counts(&self, answer: &ResolveResponse) -> Markup {
        html! {
            dl.facts {
                dt { "Objects that have them" }
                dd { (number(answer.objects)) }
                @if self.end.done == DELETE.done {
                    dt { "Objects that are deleted as a whole" }
                    dd { (number(answer.deleted_objects)) }
                }
                dt { "Left out because they are resolved already" }
                dd { (number(answer.resolved)) }
                (left_out(&answer.left_out))
                dt { "Cannot be read" }
                dd { (number(answer.failed)) }
            }
            (failures(&answer.failures, "What cannot be read"))
        }
    }

    fn form(&self, visit: &Visit, cursor: Option<&str>, text: &str) -> Markup {
        let class = if self.end.done == DELETE.done {
            "danger"
        } else {
            "primary"
        };
        let former = self.include_former.then_some("true");
        let more = [
            ("includeFormer", former),
            ("cursor", cursor),
            (STEP.0, Some(STEP.1)),
        ];
        html! {
            form method="post" action=(Address::new(&["dead-letters", self.end.verb])) {
                (form_token(&visit.form_token))
                (hidden(&self.search.hidden()))
                (hidden(&more))
                button class=(class) type="submit" { (text) }
            }
        }
    }

    fn owner(&self) -> Markup {
        let (topic, name) = self.search.owner().unwrap_or_default();
        html! { (foreign(topic)) " / " (foreign(name)) }
    }

    fn back(&self) -> Markup {
        html! { a.button href=(self.search.address(None)) { "Back to the dead letters" } }
    }

    fn title(&self) -> &'static str {
        if self.end.done == DELETE.done {
            "Delete"
        } else {
            "Resolve"
        }
    }

    fn whether(&self) -> &'static str {
        if self.end.done == DELETE.done {
            "dead letters were deleted"
        } else {
            "dead letters were resolved"
        }
    }

    fn refused(&self, refusal: &Refusal) -> Page {
        let list = self.search.address(None).to_string();
        let body = html! {
            @if self.search.owner().is_some() {
                (problem(refusal))
                @if !self.is_dry_run { (hint(refusal, self.whether(), &list, "the dead letters")) }
            } @else {
                p { "Choose a topic and a subscription first." }
            }
            p { (self.back()) }
        };
        let status = if refusal.status == 0 {
            StatusCode::BAD_REQUEST
        } else {
            refusal.status()
        };
        let unchanged = "Nothing was changed";
        let title = if self.is_dry_run {
            unchanged
        } else {
            title(refusal, unchanged)
        };
        Page::new(title, body)
            .of(Section::DeadLetters)
            .with_status(status)
    }
}
