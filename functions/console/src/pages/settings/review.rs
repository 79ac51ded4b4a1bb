//! The page that shows what saving would change, before it is saved.

use axum::http::StatusCode;
use maud::{Markup, html};

use super::editor::SettingsEditor;
use super::present::{PresentSettings, WantedSettings};
use crate::display::foreign_text;
use crate::editing::{change_table, changed_meanwhile_note};
use crate::page::ConsolePage;
use crate::parts::copy_block;

/// The page with what saving would make, and the way to save it. Saving from there is over the
/// present version.
pub(super) fn review_page(
    editor: &SettingsEditor<'_>,
    present: &PresentSettings,
    wanted: &WantedSettings,
) -> ConsolePage {
    let is_changed = editor.draft.version != present.version;
    let body = html! {
        @if editor.target.is_new() {
            (new_settings(editor, wanted))
        } @else {
            @if is_changed { (changed_meanwhile_note(editor.target.changed_thing())) }
            (change_table(&wanted.changes))
        }
        (decision_form(editor, &present.version))
    };
    let status = if is_changed {
        StatusCode::CONFLICT
    } else {
        StatusCode::OK
    };
    editor.titled_page(body).with_status(status)
}

fn new_settings(editor: &SettingsEditor<'_>, wanted: &WantedSettings) -> Markup {
    let word = editor.target.word();
    html! {
        p { "Saving makes the " (word) " " strong { (foreign_text(&editor.draft.name)) } " with these settings:" }
        (copy_block(&format!("Settings of the new {word}"), &wanted.text))
        @if wanted.makes_secret { p { "A signing secret is made, and shown once after saving." } }
    }
}

/// The buttons that save what is shown, or go back to the form.
fn decision_form(editor: &SettingsEditor<'_>, version: &str) -> Markup {
    let buttons = html! {
        button.primary type="submit" name="step" value="save" { "Save" }
        button type="submit" name="step" value="edit" { "Go on editing" }
        a.button href=(editor.target.back_path()) { "Cancel" }
    };
    editor.decision_form(version, &buttons)
}
