//! The way to another tab, whose page does not have the draft: it is not lost without a question.

use axum::response::{IntoResponse, Redirect, Response};
use maud::html;

use super::editor::SettingsEditor;
use super::present::PresentSettings;
use crate::api::ManageApi;

/// Leads to `page` if the draft has nothing new, and asks otherwise.
pub(super) async fn leave_for_page(
    api: &ManageApi,
    editor: &SettingsEditor<'_>,
    page: &str,
) -> Response {
    if is_as_stored(api, editor).await {
        return Redirect::to(page).into_response();
    }
    let buttons = html! {
        button.primary type="submit" name="step" value="edit" { "Go on editing" }
        button type="submit" name="step" value="check" { "Show what changes" }
        a.button href=(page) { "Leave without saving" }
    };
    let body = html! {
        p { "What you typed is not saved. It is lost when you leave." }
        (editor.decision_form(&editor.draft.version, &buttons))
    };
    editor.titled_page(body).into_response()
}

/// Whether the draft says what the stored settings say. What cannot be read may differ.
async fn is_as_stored(api: &ManageApi, editor: &SettingsEditor<'_>) -> bool {
    let Ok(present) = PresentSettings::load(api, editor.target).await else {
        return false;
    };
    present
        .first_draft(editor.target)
        .is_ok_and(|first| first.text.trim_end() == editor.draft.text.trim_end())
}
