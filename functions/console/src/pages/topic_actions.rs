//! Actions of the page of a topic: its keys, and its deletion.

use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::api::{KeyName, SecretText, TopicKeysView};

use crate::address;
use crate::api::RequestTarget;
use crate::console::PageContext;
use crate::display::foreign_text;
use crate::extract::{FormFields, PathParts};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::pages::deletion;
use crate::pages::subscription_actions::no_reload_warning;
use crate::parts::{address_after, button_form, refused_page};
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;
use crate::visit::PageVisit;

/// The columns.
const COLUMNS: [TableColumn; 4] = [Text("Name"), Text("Tier"), Text("Key"), Text("Change")];

/// Shows the publish keys, this once.
pub(crate) async fn show_keys(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic]): PathParts<1>,
) -> PageResult {
    let keys = pages
        .api
        .get(RequestTarget::new(&["topics", &topic, "keys"]))
        .await?;
    Ok(keys_page(&visit, &topic, &keys, None))
}

/// Makes or replaces a key, and shows it with the others.
pub(crate) async fn regenerate_key(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, key]): PathParts<2>,
) -> PageResult {
    let target = RequestTarget::new(&["topics", &topic, "keys", &key, "regenerate"]);
    let keys = pages
        .api
        .post(target)
        .await
        .map_err(|refusal| refused_page(&refusal, &address::topic_path(&topic, &[])))?;
    Ok(keys_page(&visit, &topic, &keys, Some(&key)))
}

/// Deletes a key of another tier.
pub(crate) async fn delete_key(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, key]): PathParts<2>,
) -> Result<Redirect, ConsolePage> {
    let back = address::topic_path(&topic, &[]);
    let deleted = pages
        .api
        .delete(RequestTarget::new(&["topics", &topic, "keys", &key]))
        .await;
    deleted.map_err(|refusal| refused_page(&refusal, &back))?;
    Ok(Redirect::to(&address_after(
        &back,
        "key-deleted",
        visit.now,
    )))
}

/// Deletes the topic.
pub(crate) async fn delete_topic(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic]): PathParts<1>,
    fields: FormFields,
) -> Result<Redirect, ConsolePage> {
    let back = address::topic_path(&topic, &[]);
    deletion::check_typed_name(&fields, &topic, &back)?;
    let deleted = pages
        .api
        .delete(RequestTarget::new(&["topics", &topic]))
        .await;
    deleted.map_err(|refusal| refused_page(&refusal, &back))?;
    Ok(Redirect::to(&address_after(
        &address::page_path(&["topics"]),
        "deleted",
        visit.now,
    )))
}

fn keys_page(
    visit: &PageVisit,
    topic: &str,
    keys: &TopicKeysView,
    made: Option<&str>,
) -> ConsolePage {
    let present: Vec<_> = keys.present_keys().collect();
    let missing = KeyName::ALL
        .into_iter()
        .filter(|key| !present.iter().any(|(name, _)| name == key));
    let body = html! {
        @if let Some(made) = made {
            p.done role="status" { "The key " (foreign_text(made)) " was made." }
            (no_reload_warning())
        }
        p {
            "Each of these keys lets a producer publish to "
            a href=(address::topic_path(topic, &[])) { (foreign_text(topic)) }
            ". Leave this page when you have copied what you need."
        }
        (data_table("Publish keys", &COLUMNS, present.iter().map(|(name, key)| key_cells(visit, topic, *name, key))))
        h2 { "Keys of other tiers" }
        p {
            "Producers with an internal key may publish where back pressure refuses others. Those with a \
             bulk key are refused first."
        }
        div.actions {
            @for key in missing { (key_form(visit, topic, key, &[], &format!("Make {key}"), "")) }
        }
    };
    ConsolePage::new(format!("Publish keys of {topic}"), body).in_section(MenuSection::Topics)
}

fn key_cells(visit: &PageVisit, topic: &str, name: KeyName, key: &SecretText) -> [Markup; 4] {
    [
        html! { (name) },
        html! { (name.tier()) },
        html! { code { (key.expose()) } },
        change_cell(visit, topic, name),
    ]
}

fn change_cell(visit: &PageVisit, topic: &str, name: KeyName) -> Markup {
    html! {
        details {
            summary { "Replace " @if !name.is_permanent() { "or delete " } (name) }
            p.hint { "The present key stops working within seconds." }
            (key_form(visit, topic, name, &[], &format!("Replace {name}"), "danger"))
            @if !name.is_permanent() {
                (key_form(visit, topic, name, &["delete"], &format!("Delete {name}"), "danger"))
            }
        }
    }
}

fn key_form(
    visit: &PageVisit,
    topic: &str,
    key: KeyName,
    below: &[&str],
    label: &str,
    class: &str,
) -> Markup {
    let action = address::topic_path(topic, &[&["keys", key.as_str()], below].concat());
    button_form(visit, &action, class, label)
}
