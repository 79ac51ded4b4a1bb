//! Actions of the page of a topic: its keys, and its deletion.

use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::api::{KeyName, SecretText, TopicKeysView};

use crate::address;
use crate::api::Target;
use crate::asked::{Fields, Path};
use crate::console::Pages;
use crate::page::{Answer, Page, Section};
use crate::pages::deletion;
use crate::pages::subscription_actions::not_again;
use crate::parts::{after, button, refused};
use crate::shown::foreign;
use crate::table::Column::{self, Text};
use crate::table::table;
use crate::visit::Visit;

/// The columns.
const COLUMNS: [Column; 4] = [Text("Name"), Text("Tier"), Text("Key"), Text("Change")];

/// Shows the publish keys, this once.
pub(crate) async fn keys(pages: Pages, visit: Visit, Path([topic]): Path<1>) -> Answer {
    let keys = pages
        .api
        .get(Target::new(&["topics", &topic, "keys"]))
        .await?;
    Ok(keys_page(&visit, &topic, &keys, None))
}

/// Makes or replaces a key, and shows it with the others.
pub(crate) async fn regenerate(pages: Pages, visit: Visit, Path([topic, key]): Path<2>) -> Answer {
    let target = Target::new(&["topics", &topic, "keys", &key, "regenerate"]);
    let keys = pages
        .api
        .post(target)
        .await
        .map_err(|refusal| refused(&refusal, &address::topic(&topic, &[])))?;
    Ok(keys_page(&visit, &topic, &keys, Some(&key)))
}

/// Deletes a key of another tier.
pub(crate) async fn delete_key(
    pages: Pages,
    visit: Visit,
    Path([topic, key]): Path<2>,
) -> Result<Redirect, Page> {
    let back = address::topic(&topic, &[]);
    let deleted = pages
        .api
        .delete(Target::new(&["topics", &topic, "keys", &key]))
        .await;
    deleted.map_err(|refusal| refused(&refusal, &back))?;
    Ok(Redirect::to(&after(&back, "key-deleted", visit.now)))
}

/// Deletes the topic.
pub(crate) async fn delete(
    pages: Pages,
    visit: Visit,
    Path([topic]): Path<1>,
    fields: Fields,
) -> Result<Redirect, Page> {
    let back = address::topic(&topic, &[]);
    deletion::check(&fields, &topic, &back)?;
    let deleted = pages.api.delete(Target::new(&["topics", &topic])).await;
    deleted.map_err(|refusal| refused(&refusal, &back))?;
    Ok(Redirect::to(&after(
        &address::page(&["topics"]),
        "deleted",
        visit.now,
    )))
}

fn keys_page(visit: &Visit, topic: &str, keys: &TopicKeysView, made: Option<&str>) -> Page {
    let present: Vec<_> = keys.present_keys().collect();
    let missing = KeyName::ALL
        .into_iter()
        .filter(|key| !present.iter().any(|(name, _)| name == key));
    let body = html! {
        @if let Some(made) = made {
            p.done role="status" { "The key " (foreign(made)) " was made." }
            (not_again())
        }
        p {
            "Each of these keys lets a producer publish to "
            a href=(address::topic(topic, &[])) { (foreign(topic)) }
            ". Leave this page when you have copied what you need."
        }
        (table("Publish keys", &COLUMNS, present.iter().map(|(name, key)| row(visit, topic, *name, key))))
        h2 { "Keys of other tiers" }
        p {
            "Producers with an internal key may publish where back pressure refuses others. Those with a \
             bulk key are refused first."
        }
        div.actions {
            @for key in missing { (change(visit, topic, key, &[], &format!("Make {key}"), "")) }
        }
    };
    Page::new(format!("Publish keys of {topic}"), body).of(Section::Topics)
}

fn row(visit: &Visit, topic: &str, name: KeyName, key: &SecretText) -> Markup {
    html! {
        tr {
            th scope="row" { (name) }
            td { (name.tier()) }
            td { code { (key.expose()) } }
            td {
                details {
                    summary { "Replace " @if !name.is_permanent() { "or delete " } (name) }
                    p.hint { "The present key stops working within seconds." }
                    (change(visit, topic, name, &[], &format!("Replace {name}"), "danger"))
                    @if !name.is_permanent() {
                        (change(visit, topic, name, &["delete"], &format!("Delete {name}"), "danger"))
                    }
                }
            }
        }
    }
}

fn change(
    visit: &Visit,
    topic: &str,
    key: KeyName,
    below: &[&str],
    label: &str,
    class: &str,
) -> Markup {
    let action = address::topic(topic, &[&["keys", key.as_str()], below].concat());
    button(visit, &action, class, label)
}
