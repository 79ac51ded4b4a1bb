//! The topics that a form offers.

use maud::Markup;
use posthaste_core::api::TopicPage;

use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::filters::FormField;

/// Most topics that a form offers. Each costs the API a read.
const TOPICS_SHOWN_MAX: usize = 50;

/// The names of the topics, as far as a form offers them.
#[derive(Debug, Clone)]
pub(crate) struct TopicNames {
    names: Vec<String>,
    has_more: bool,
}

impl TopicNames {
    /// Loads the names.
    pub(crate) async fn load(api: &ManageApi) -> Result<Self, ApiRefusal> {
        let target = RequestTarget::new(&["topics"]).query("limit", Some(TOPICS_SHOWN_MAX));
        let page: TopicPage = api.get(target).await?;
        let unreadable = page.unreadable.into_iter().map(|topic| topic.name);
        let names = page
            .topics
            .into_iter()
            .map(|topic| topic.name.to_string())
            .chain(unreadable)
            .collect();
        Ok(Self {
            names,
            has_more: page.cursor.is_some(),
        })
    }

    /// The names that the form offers.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether there is no topic at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The topic, if there is just one.
    pub(crate) fn only_name(&self) -> Option<&str> {
        match self.names.as_slice() {
            [name] if !self.has_more => Some(name),
            _ => None,
        }
    }

    /// The field for the topic. It takes other names too: a topic that was deleted may still have
    /// dead letters and records in the log.
    pub(crate) fn topic_field(
        &self,
        none: &str,
        value: Option<&str>,
        refusal: Option<&ApiRefusal>,
    ) -> Markup {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        let known = value.and_then(|value| {
            let mut names = names.iter().copied();
            names.find(|name| name.eq_ignore_ascii_case(value))
        });
        FormField::new("topic", "Topic", known.or(value), refusal)
            .with_example(none)
            .suggesting_input(&names)
    }
}
