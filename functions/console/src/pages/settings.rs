//! The settings of a topic or a subscription, and how a new one is made: a draft, its mistakes with
//! their places, what saving would change, and a save of the version that the difference was to.
//! The draft is in a form, or is YAML.

mod created;
mod editor;
mod fields;
mod form;
mod form_tab;
mod help;
mod leave;
mod present;
mod review;
mod target;
mod template;
mod typed;
mod yaml_tab;

use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use posthaste_core::api::SubscriptionSettings;
use posthaste_yaml::TextMistake;
use serde::Deserialize;
use serde_json::Value;

use self::created::created_page;
use self::editor::SettingsEditor;
use self::form::SettingsForm;
use self::leave::leave_for_page;
use self::present::{PresentSettings, taken_name_mistake};
use self::review::review_page;
use self::target::EditedTarget;
pub(crate) use self::typed::TypedSettings;
use crate::console::{PageContext, PageRoutes};
use crate::editing::{EditStep, SettingsDraft};
use crate::extract::{FormFields, PageQuery};
use crate::page::{ConsolePage, PageResult};
use crate::pages::subscription::SubscriptionInUrl;
use crate::parts::address_after;
use crate::visit::PageVisit;

/// The name of the tab with YAML.
const YAML: &str = "yaml";

/// The query of the page.
#[derive(Debug, Default, Deserialize)]
struct SettingsQuery {
    /// The tab that is shown, which is the form unless it is YAML.
    tab: Option<String>,
}

/// The routes of this page.
pub(crate) fn routes() -> PageRoutes {
    let page = get(show_form).post(submit_form);
    Router::new()
        .route("/topics/new", page.clone())
        .route("/topics/{topic}/edit", page.clone())
        .route("/topics/{topic}/subscriptions/new", page.clone())
        .route("/topics/{topic}/subscriptions/{name}/edit", page)
}

/// The form with the present settings.
async fn show_form(
    pages: PageContext,
    visit: PageVisit,
    target: EditedTarget,
    PageQuery(query): PageQuery<SettingsQuery>,
) -> PageResult {
    let present = PresentSettings::load(&pages.api, &target).await?;
    let draft = present
        .first_draft(&target)
        .map_err(|mistake| ConsolePage::bad_request(&mistake.text))?;
    let draft = draft.check_length("Nothing was changed.")?;
    let is_form = query.tab.as_deref() != Some(YAML);
    let form = is_form.then(|| read_form(&target, &draft.text));
    let editor = SettingsEditor {
        visit: &visit,
        target: &target,
        draft: &draft,
        form: form.as_ref().and_then(|form| form.as_ref().ok()),
    };
    Ok(editor.form_page(&[]))
}

/// Takes the step of editing that the form names.
async fn submit_form(
    pages: PageContext,
    visit: PageVisit,
    target: EditedTarget,
    fields: FormFields,
) -> Result<Response, ConsolePage> {
    let step = EditStep::from_form(&fields);
    let sent = SettingsDraft::from_form(&fields)?;
    let yaml_editor = SettingsEditor {
        visit: &visit,
        target: &target,
        draft: &sent,
        form: None,
    };
    let form = match wants_form(&fields, step).then(|| read_form(&target, &sent.text)) {
        None => None,
        Some(Ok(form)) => Some(form.with_typed(&fields)),
        // What was reviewed is saved, also where it has become too long for the form.
        Some(Err(_)) if step == EditStep::Save => None,
        Some(Err(mistakes)) => return Err(yaml_editor.formless_page(&mistakes)),
    };
    let text = match (&form, step) {
        (Some(form), EditStep::ShowYaml) => form.to_yaml_tab(),
        (Some(form), _) => form.to_yaml(),
        (None, _) => sent.text.clone(),
    };
    let draft = SettingsDraft {
        text,
        ..sent.clone()
    };
    let draft =
        draft.check_length("Nothing was saved. Go back in your browser to find your text.")?;
    let editor = SettingsEditor {
        draft: &draft,
        form: form.as_ref().filter(|_| step != EditStep::ShowYaml),
        ..yaml_editor
    };
    if matches!(
        step,
        EditStep::Edit | EditStep::ShowForm | EditStep::ShowYaml
    ) {
        return Ok(editor.form_page(&[]).into_response());
    }
    if let Some(page) = target.page_to_leave_for(step) {
        return Ok(leave_for_page(&pages.api, &editor, &page).await);
    }
    let present = PresentSettings::load(&pages.api, &target)
        .await
        .map_err(|refusal| editor.unread_page(&refusal))?;
    let wanted = present
        .read_draft(&target, &draft, visit.now)
        .map_err(|mistakes| editor.form_page(&mistakes))?;
    if step == EditStep::Check {
        return Ok(review_page(&editor, &present, &wanted).into_response());
    }
    match target.save(&pages.api, &draft, &wanted.body).await {
        Ok(saved) => Ok(saved_page(&editor, saved.body)),
        Err(refusal) if refusal.is_version_conflict() && target.is_new() => {
            Err(editor.form_page(&[taken_name_mistake(&draft.name)]))
        }
        Err(refusal) if refusal.is_version_conflict() => {
            Ok(review_page(&editor, &present, &wanted).into_response())
        }
        Err(refusal) => Err(editor.unsaved_page(&refusal)),
    }
}

/// Whether the draft is in the form, or is to be shown in it.
fn wants_form(fields: &FormFields, step: EditStep) -> bool {
    step == EditStep::ShowForm || fields.get("tab") == "form"
}

/// The form with the settings of a text, or the mistakes for which it cannot show them.
fn read_form(target: &EditedTarget, text: &str) -> Result<SettingsForm, Vec<TextMistake>> {
    match target {
        EditedTarget::NewTopic | EditedTarget::Topic { .. } => SettingsForm::for_topic(text),
        EditedTarget::NewSubscription { .. } | EditedTarget::Subscription { .. } => {
            SettingsForm::for_subscription(text)
        }
    }
}

/// The page after saving.
fn saved_page(editor: &SettingsEditor<'_>, saved: Value) -> Response {
    let name = editor.draft.name.as_str();
    if let EditedTarget::NewSubscription { topic } = editor.target
        && let Ok(created) = serde_json::from_value::<SubscriptionSettings>(saved)
    {
        return created_page(editor.visit, SubscriptionInUrl { topic, name }, &created);
    }
    let word = if editor.target.is_new() {
        "created"
    } else {
        "saved"
    };
    let page = editor.target.saved_path(name);
    Redirect::to(&address_after(&page, word, editor.visit.now)).into_response()
}
