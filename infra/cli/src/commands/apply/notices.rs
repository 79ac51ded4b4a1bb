//! Notices topics that do not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use posthaste_core::api::TopicSettings;
use posthaste_core::model::TopicName;

use super::file::CheckedFile;

/// Warnings about notices topics that are neither in the files nor on the server. They may be
/// created later, so this is no error. Once the server cannot be asked, it is asked no more, and
/// there is no other warning.
pub(super) fn missing_topic_warnings<E>(
    files: &[CheckedFile],
    is_on_server: impl Fn(&TopicName) -> Result<bool, E>,
) -> Vec<String> {
    let declared: BTreeSet<_> = topics_with_paths(files)
        .map(|(_, name, _)| name.folded())
        .collect();
    let mut asked = BTreeMap::new();
    let mut has_failed = false;
    let mut warnings = Vec::new();
    for (path, name, settings) in topics_with_paths(files) {
        let Some(topic) = &settings.notices_topic else {
            continue;
        };
        let folded = topic.folded();
        if declared.contains(&folded) {
            continue;
        }
        let is_there = *asked.entry(folded).or_insert_with(|| {
            let answer = if has_failed {
                None
            } else {
                is_on_server(topic).ok()
            };
            has_failed = answer.is_none();
            answer.unwrap_or(true)
        });
        if !is_there {
            warnings.push(format!(
                "{}: topics.{name}.noticesTopic: there is no topic {topic}; no notices are sent until you create \
                    it",
                path.display()
            ));
        }
    }
    warnings
}

/// Every topic of the files, with its file.
fn topics_with_paths(
    files: &[CheckedFile],
) -> impl Iterator<Item = (&Path, &TopicName, &TopicSettings)> {
    files.iter().flat_map(|file| {
        file.contents
            .topics
            .iter()
            .map(|(name, settings)| (file.path.as_path(), name, settings))
    })
}

#[cfg(test)]
mod tests {
    use super::super::check_file;
    use super::*;

    #[test]
    fn a_notices_topic_that_is_nowhere_is_a_warning() {
        let file = |path: &str, text: &str| check_file(Path::new(path), text.as_bytes()).unwrap();
        let files = [
            file(
                "a.yaml",
                "topics: { a: { noticesTopic: OPS }, b: { noticesTopic: opps }, c: { noticesTopic: C } }",
            ),
            file(
                "b.yaml",
                "topics: { ops: { noticesTopic: far }, d: {}, e: { noticesTopic: opps } }",
            ),
        ];
        let asked = std::cell::RefCell::new(Vec::new());
        let found = missing_topic_warnings(&files, |topic| {
            asked.borrow_mut().push(topic.to_string());
            Ok::<_, ()>(topic.as_str() == "far")
        });
        let warning = |at: &str| {
            format!(
                "{at}.noticesTopic: there is no topic opps; no notices are sent until you create it"
            )
        };
        assert_eq!(
            found,
            [warning("a.yaml: topics.b"), warning("b.yaml: topics.e")]
        );
        assert_eq!(asked.into_inner(), ["opps", "far"]);
    }

    #[test]
    fn after_an_error_the_server_is_asked_no_more() {
        let text =
            "topics: { a: { noticesTopic: x }, b: { noticesTopic: y }, c: { noticesTopic: z } }";
        let files = [check_file(Path::new("a.yaml"), text.as_bytes()).unwrap()];
        let asked = std::cell::RefCell::new(Vec::new());
        let found = missing_topic_warnings(&files, |topic| {
            asked.borrow_mut().push(topic.to_string());
            if topic.as_str() == "x" {
                Ok(false)
            } else {
                Err(())
            }
        });
        assert_eq!(
            (found.len(), asked.into_inner()),
            (1, vec!["x".to_owned(), "y".to_owned()])
        );
    }
}
