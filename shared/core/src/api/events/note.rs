//! The note of an answer from the log: what it may lack, and why.

/// Most damaged files that a note names.
const FILES_NAMED_MAX: usize = 3;

/// What is known of an answer's completeness.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogNote<'a> {
    /// Whether an event was asked for of which the log has no record.
    pub is_unknown: bool,
    /// Whether the topic's delivery log is off.
    pub is_off: bool,
    /// Whether there are more records of the id than an answer has.
    pub is_cut: bool,
    /// The files that are damaged.
    pub damaged: &'a [&'a str],
}

impl LogNote<'_> {
    /// The note; `None` if there is nothing to say.
    pub fn text(self) -> Option<String> {
        let unknown = self.is_unknown.then(|| UNKNOWN.to_owned());
        let off = self.is_off.then(|| OFF.to_owned());
        let cut = self.is_cut.then(|| CUT.to_owned());
        let sentences: Vec<_> = [unknown, off, cut, self.damage()].into_iter().flatten().collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    fn damage(self) -> Option<String> {
        let named = self.damaged.iter().take(FILES_NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = match self.damaged.len().saturating_sub(FILES_NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!("Files of the log are damaged, and may have had more records: {named}{more}.");
        (!self.damaged.is_empty()).then_some(text)
    }
}

const UNKNOWN: &str = "The log has no record of this event. The first record is made with the first attempt, \
                       so an event that was accepted may be waiting for it. Records of old events are gone.";

const OFF: &str = "The delivery log of this topic is off, so what happens now is not recorded.";

const CUT: &str = "The id has more records than are shown: name a later `from`, or an earlier `to`, for the \
                   others.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_an_answer_may_lack() {
        let check = |note: LogNote<'_>, expected: Option<&str>| {
            assert_eq!(note.text().as_deref(), expected, "{note:?}");
        };
        let all = LogNote::default();
        check(all, None);
        check(LogNote { is_unknown: true, ..all }, Some(UNKNOWN));
        check(LogNote { is_unknown: true, is_off: true, ..all }, Some(&format!("{UNKNOWN} {OFF}")));
        check(LogNote { is_cut: true, ..all }, Some(CUT));
    }

    #[test]
    fn damaged_files_are_named_as_far_as_there_is_room() {
        let check = |damaged: &[&str], named: &str| {
            let text = LogNote { damaged, ..LogNote::default() }.text().unwrap();
            assert!(text.ends_with(&format!(": {named}.")), "{text}");
        };
        check(&["a"], "a");
        check(&["a", "b", "c"], "a, b, c");
        check(&["a", "b", "c", "d", "e"], "a, b, c and 2 more");
    }

    /// An event without a record may have been accepted all the same.
    #[test]
    fn a_note_never_says_that_an_event_was_not_accepted() {
        assert!(!UNKNOWN.contains("not accepted") && UNKNOWN.contains("may be waiting"));
    }
}
