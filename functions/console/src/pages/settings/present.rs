//! The settings that are edited, as they are now and as a draft wants them.

use std::collections::BTreeMap;
use std::fmt::Display;

use posthaste_core::api::edit::{check_subscription, check_topic, preview_topic};
use posthaste_core::api::problem::ApiProblem;
use posthaste_core::api::{
    MemberChange, SubscriptionSettings, TopicSettings, subscription_differences, topic_differences,
};
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_yaml::{TextMistake, name_mistake, value_mistake};
use serde::Serialize;
use serde_json::{Value, json};

use super::target::EditedTarget;
use super::template::{EXAMPLE_URL, NEW_SUBSCRIPTION, NEW_TOPIC};
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::editing::{SettingsDraft, unplaced_mistake};

/// The name that the settings of something new are checked under while its own is mistaken.
const NAME_TO_CHECK_WITH: &str = "new";

/// The name of the field with the name of something new, and of its mistakes.
pub(super) const NAME: &str = "name";

/// The settings that a draft is compared with.
#[derive(Debug, Default)]
pub(super) struct PresentSettings {
    /// The topic, as it is shown. `None` for a new one.
    topic: Option<TopicSettings>,
    /// The version of what is edited. Empty for something new.
    pub(super) version: String,
}

/// The settings that a draft results in.
#[derive(Debug)]
pub(super) struct WantedSettings {
    /// The settings, as they are sent to the API.
    pub(super) body: Value,
    /// The difference to the present ones.
    pub(super) changes: Vec<MemberChange>,
    /// The settings as they will be shown, as YAML.
    pub(super) text: String,
    /// Whether saving makes a signing secret.
    pub(super) makes_secret: bool,
}

impl PresentSettings {
    /// Asks the API for the settings.
    pub(super) async fn load(api: &ManageApi, target: &EditedTarget) -> Result<Self, ApiRefusal> {
        match target {
            EditedTarget::NewTopic => Ok(Self::default()),
            EditedTarget::Topic { .. } => {
                let found = api.get_versioned(target.request_target("")).await?;
                Ok(Self {
                    topic: Some(found.body),
                    version: found.etag.unwrap_or_default(),
                })
            }
            EditedTarget::NewSubscription { topic } => Ok(Self {
                topic: Some(api.get(RequestTarget::new(&["topics", topic])).await?),
                version: String::new(),
            }),
            EditedTarget::Subscription { topic, .. } => {
                // The version is read first: if the topic is newer, saving is refused and does not
                // undo the newer change.
                let found = api
                    .get_versioned::<Value>(target.request_target(""))
                    .await?;
                Ok(Self {
                    topic: Some(api.get(RequestTarget::new(&["topics", topic])).await?),
                    version: found.etag.unwrap_or_default(),
                })
            }
        }
    }

    /// The draft that editing begins with.
    pub(super) fn first_draft(&self, target: &EditedTarget) -> Result<SettingsDraft, TextMistake> {
        let text = match target {
            EditedTarget::NewTopic => NEW_TOPIC.to_owned(),
            EditedTarget::NewSubscription { .. } => NEW_SUBSCRIPTION.to_owned(),
            EditedTarget::Topic { .. } => to_text(&topic_alone(self.topic()?))?,
            EditedTarget::Subscription { name, .. } => {
                let (_, shown) = self
                    .find_subscription(name)
                    .ok_or_else(|| unplaced_mistake("", "the subscription was deleted just now"))?;
                to_text(&shown.settings_only())?
            }
        };
        Ok(SettingsDraft {
            text,
            version: self.version.clone(),
            name: String::new(),
        })
    }

    /// The settings that a draft results in, or all of its mistakes.
    pub(super) fn read_draft(
        &self,
        target: &EditedTarget,
        draft: &SettingsDraft,
        now: Timestamp,
    ) -> Result<WantedSettings, Vec<TextMistake>> {
        match target {
            EditedTarget::NewTopic => new_topic(draft),
            EditedTarget::Topic { .. } => self.changed_topic(draft, now),
            EditedTarget::NewSubscription { .. } => self.new_subscription(draft, now),
            EditedTarget::Subscription { name, .. } => self.subscription(name, draft, now),
        }
    }

    fn topic(&self) -> Result<&TopicSettings, TextMistake> {
        self.topic
            .as_ref()
            .ok_or_else(|| unplaced_mistake("", "there is no topic"))
    }

    /// The topic with its name as it was created.
    fn named_topic(&self) -> Result<(&TopicName, &TopicSettings), Vec<TextMistake>> {
        let topic = self.topic().map_err(|mistake| vec![mistake])?;
        let name = topic
            .name
            .as_ref()
            .ok_or_else(|| vec![unplaced_mistake("name", "the topic has no name")])?;
        Ok((name, topic))
    }

    fn find_subscription(&self, name: &str) -> Option<(&SubscriptionName, &SubscriptionSettings)> {
        self.topic
            .as_ref()?
            .find_subscription(&SubscriptionName::parse(name).ok()?)
    }

    fn changed_topic(
        &self,
        draft: &SettingsDraft,
        now: Timestamp,
    ) -> Result<WantedSettings, Vec<TextMistake>> {
        let (name, present) = self.named_topic()?;
        let settings = read_topic(name, draft)?;
        let next = preview_topic(name, present, &settings, now)
            .map_err(|problem| draft.problem_mistakes(&problem, ""))?;
        Ok(WantedSettings {
            body: json!(settings),
            changes: topic_differences(&json!(present), &json!(next)),
            text: to_text(&topic_alone(&next)).map_err(|mistake| vec![mistake])?,
            makes_secret: false,
        })
    }

    fn new_subscription(
        &self,
        draft: &SettingsDraft,
        now: Timestamp,
    ) -> Result<WantedSettings, Vec<TextMistake>> {
        match SubscriptionName::parse(&draft.name) {
            Ok(_) if self.find_subscription(&draft.name).is_some() => {
                Err(vec![taken_name_mistake(&draft.name)])
            }
            Ok(_) => {
                let wanted = self.subscription(&draft.name, draft, now);
                wanted.and_then(|wanted| without_example(draft, wanted))
            }
            Err(error) => {
                let wanted = self.subscription(NAME_TO_CHECK_WITH, draft, now);
                let wanted = wanted.and_then(|wanted| without_example(draft, wanted));
                Err(with_name_mistake(&error, wanted))
            }
        }
    }

    fn subscription(
        &self,
        name: &str,
        draft: &SettingsDraft,
        now: Timestamp,
    ) -> Result<WantedSettings, Vec<TextMistake>> {
        let (topic_name, topic) = self.named_topic()?;
        let name =
            SubscriptionName::parse(name).map_err(|error| vec![unplaced_mistake("name", error)])?;
        let settings = posthaste_yaml::read_subscription(draft.text.as_bytes(), &|written| {
            check_subscription(topic_name, topic, &name, written)
        })?;
        let next = preview_subscription(topic, &name, &settings, now).map_err(|problem| {
            draft.problem_mistakes(&problem, &format!("subscriptions.{name}."))
        })?;
        let before = topic.find_subscription(&name).map(|(_, it)| json!(it));
        Ok(WantedSettings {
            body: json!(settings),
            changes: subscription_differences(&before.unwrap_or_default(), &json!(next)),
            text: to_text(&next.settings_only()).map_err(|mistake| vec![mistake])?,
            makes_secret: settings.signing.secrets.is_none(),
        })
    }
}

fn new_topic(draft: &SettingsDraft) -> Result<WantedSettings, Vec<TextMistake>> {
    let name = match TopicName::parse(&draft.name) {
        Ok(name) => name,
        Err(error) => {
            let checked = TopicName::parse(NAME_TO_CHECK_WITH)
                .map_err(|_| Vec::new())
                .and_then(|name| read_topic(&name, draft));
            return Err(with_name_mistake(&error, checked));
        }
    };
    let settings = read_topic(&name, draft)?;
    Ok(WantedSettings {
        body: json!(settings),
        changes: Vec::new(),
        text: to_text(&settings).map_err(|mistake| vec![mistake])?,
        makes_secret: false,
    })
}

/// The settings, if they do not send events to the example of the template.
fn without_example(
    draft: &SettingsDraft,
    wanted: WantedSettings,
) -> Result<WantedSettings, Vec<TextMistake>> {
    let member = "endpoint.url";
    if wanted.body.pointer("/endpoint/url") != Some(&EXAMPLE_URL.into()) {
        return Ok(wanted);
    }
    let fault = "this is the example of the template, put the URL of your endpoint here";
    let text = draft.text.as_bytes();
    Err(vec![value_mistake(
        text,
        member.to_owned(),
        fault.to_owned(),
    )])
}

/// The mistake of a name, and those of the settings.
fn with_name_mistake<T>(
    error: &dyn Display,
    settings: Result<T, Vec<TextMistake>>,
) -> Vec<TextMistake> {
    let others = settings.err().unwrap_or_default();
    [vec![unplaced_mistake(NAME, error)], others].concat()
}

/// The mistake of a name that something has already.
pub(super) fn taken_name_mistake(name: &str) -> TextMistake {
    unplaced_mistake(NAME, format!("there is one called {name:?} already"))
}

fn read_topic(name: &TopicName, draft: &SettingsDraft) -> Result<TopicSettings, Vec<TextMistake>> {
    let text = draft.text.as_bytes();
    let settings = posthaste_yaml::read_topic(text, &|settings| check_topic(name, settings))?;
    if settings.subscriptions.is_empty() {
        return Ok(settings);
    }
    let fault = "subscriptions have pages of their own, leave them out here".to_owned();
    Err(vec![name_mistake(text, "subscriptions".to_owned(), fault)])
}

fn preview_subscription(
    topic: &TopicSettings,
    name: &SubscriptionName,
    settings: &SubscriptionSettings,
    now: Timestamp,
) -> Result<SubscriptionSettings, ApiProblem> {
    let Some(topic_name) = &topic.name else {
        return Ok(settings.clone());
    };
    let wanted = TopicSettings {
        subscriptions: BTreeMap::from([(name.clone(), settings.clone())]),
        ..topic.clone()
    };
    let next = preview_topic(topic_name, topic, &wanted, now)?;
    Ok(next
        .find_subscription(name)
        .map_or_else(|| settings.clone(), |(_, next)| next.clone()))
}

/// A topic's own settings: its subscriptions have pages of their own.
fn topic_alone(shown: &TopicSettings) -> TopicSettings {
    TopicSettings {
        name: None,
        endpoint: None,
        subscriptions: BTreeMap::new(),
        ..shown.clone()
    }
}

/// Settings as YAML.
fn to_text(settings: &impl Serialize) -> Result<String, TextMistake> {
    posthaste_yaml::to_text(settings).map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "settings cannot be shown"
        );
        unplaced_mistake("", "the settings cannot be written as YAML")
    })
}
