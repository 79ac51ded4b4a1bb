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
    let what_is_lost = match compare_with_stored(api, editor).await {
        DraftNews::None => return Redirect::to(page).into_response(),
        DraftNews::Some => "What you typed is not saved. It is lost when you leave.",
        DraftNews::Unknown => {
            "It is not known whether this differs from what is stored. What you typed is lost when you leave."
        }
    };
    let buttons = html! {
        button.primary type="submit" name="step" value="edit" { "Go on editing" }
        button type="submit" name="step" value="check" { "Show what changes" }
        a.button href=(page) { "Leave without saving" }
    };
    let body = html! {
        p { (what_is_lost) }
        (editor.decision_form(&editor.draft.version, &buttons))
    };
    editor.titled_page(body).into_response()
}

/// The difference of a draft from the stored settings.
enum DraftNews {
    None,
    Some,
    /// The settings cannot be read, or somebody else changed them meanwhile.
    Unknown,
}

async fn compare_with_stored(api: &ManageApi, editor: &SettingsEditor<'_>) -> DraftNews {
    let Ok(present) = PresentSettings::load(api, editor.target).await else {
        return DraftNews::Unknown;
    };
    let Ok(first) = present.first_draft(editor.target) else {
        return DraftNews::Unknown;
    };
    if first.text.trim_end() == editor.draft.text.trim_end() {
        DraftNews::None
    } else if first.version == editor.draft.version {
        DraftNews::Some
    } else {
        DraftNews::Unknown
    }
}
