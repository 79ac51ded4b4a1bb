//! Members laid over a kept event's text, the rest of which stays unchanged.

use bytes::{BufMut, Bytes, BytesMut};

use super::members::EventMembers;

/// The event's JSON object with these members at its end; members of the same names are left out of
/// it. `value` is JSON.
///
/// A text that is not an object (no accepted event is one) comes back as it is.
pub fn with_members(event: &Bytes, members: &[(&str, String)]) -> Bytes {
    let Some((text, present)) = EventMembers::from_event_text(event) else {
        return event.clone();
    };
    let room: usize = members
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    let mut json = BytesMut::with_capacity(event.len() + room);
    if present.iter().next().is_some() && present.iter().all(|(name, _)| !is_laid(members, name)) {
        // White space before the brace stays, so that the members can be taken off again without a
        // trace.
        json.put_slice(event.trim_ascii_end().strip_suffix(b"}").unwrap_or(event));
    } else {
        json.put_u8(b'{');
        let others = member_texts(text, &present).filter(|member| !is_laid(members, member.name));
        for member in others {
            put_member(&mut json, member.quoted, member.value);
        }
    }
    for (name, value) in members {
        put_member(&mut json, &format!("\"{name}\""), value);
    }
    json.put_u8(b'}');
    json.freeze()
}

/// The inverse of [`with_members`]: the event without these members, `first` among them, which is
/// the one that was laid first. Behind `first` they are cut off, so that the rest is as it was
/// written, byte for byte; where other members stand between them, as in files that others wrote,
/// each is left out.
///
/// A text that is not an object, or has no `first`, comes back as it is.
pub fn without_members(event: &Bytes, first: &str, members: &[&str]) -> Bytes {
    let Some((text, present)) = EventMembers::from_event_text(event) else {
        return event.clone();
    };
    let all: Vec<_> = present.iter().collect();
    let Some(at) = all.iter().position(|(name, _)| *name == first) else {
        return event.clone();
    };
    let mut json = BytesMut::with_capacity(event.len());
    let before = at.checked_sub(1).map(|before| all[before].1.json());
    let are_all_laid = all[at..].iter().all(|(name, _)| members.contains(name));
    if let Some(value) = before.filter(|_| are_all_laid) {
        let end = value.as_ptr().addr() - text.as_ptr().addr() + value.len();
        let comma = text[end..].find(',').map_or(end, |comma| end + comma);
        json.put_slice(&event[..comma]);
    } else {
        json.put_u8(b'{');
        let others = member_texts(text, &present).filter(|member| !members.contains(&member.name));
        for member in others {
            put_member(&mut json, member.quoted, member.value);
        }
    }
    json.put_u8(b'}');
    json.freeze()
}

/// A member as it stands in the text.
struct MemberText<'a> {
    /// The name, decoded.
    name: &'a str,
    /// The name as written, in its quotes.
    quoted: &'a str,
    /// The value as written.
    value: &'a str,
}

/// The members of `text`, which `members` were read from. A name is what stands in quotes between
/// two values.
fn member_texts<'a>(
    text: &'a str,
    members: &'a EventMembers<'a>,
) -> impl Iterator<Item = MemberText<'a>> {
    let mut end = 0;
    members.iter().map(move |(name, value)| {
        let value = value.json();
        let start = value.as_ptr().addr() - text.as_ptr().addr();
        let between = &text[end..start];
        end = start + value.len();
        let quoted = between
            .find('"')
            .zip(between.rfind('"'))
            .map_or(between, |(from, to)| &between[from..=to]);
        MemberText {
            name,
            quoted,
            value,
        }
    })
}

/// Whether a member of this name is among those that are laid over an event.
fn is_laid(members: &[(&str, String)], name: &str) -> bool {
    members.iter().any(|(laid, _)| *laid == name)
}

fn put_member(json: &mut BytesMut, quoted: &str, value: &str) {
    if !json.ends_with(b"{") {
        json.put_u8(b',');
    }
    json.put_slice(quoted.as_bytes());
    json.put_u8(b':');
    json.put_slice(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(event: &'static str, expected: &str) {
        let members = [("reason", "\"x\"".to_owned()), ("n", "1".to_owned())];
        assert_eq!(
            with_members(&Bytes::from_static(event.as_bytes()), &members),
            expected
        );
    }

    #[test]
    fn members_are_laid_over_the_text_as_it_is() {
        check(r#"{"a": 1.00 }"#, r#"{"a": 1.00 ,"reason":"x","n":1}"#);
        check("{}", r#"{"reason":"x","n":1}"#);
        check("{ }", r#"{"reason":"x","n":1}"#);
        check(
            r#"{"n":5,"a" : [ 1 ],"\u0072eason":"old"}"#,
            r#"{"a":[ 1 ],"reason":"x","n":1}"#,
        );
        check(
            r#"{"n":5, "\u0061\"\uffff" :1}"#,
            r#"{"\u0061\"\uffff":1,"reason":"x","n":1}"#,
        );
        check("[]", "[]");
    }

    fn check_without(event: &'static str, expected: &str) {
        let event = Bytes::from_static(event.as_bytes());
        assert_eq!(
            without_members(&event, "reason", &["reason", "n"]),
            expected
        );
    }

    #[test]
    fn members_are_taken_off_wherever_they_stand() {
        check_without(r#"{"a": 1.00 ,"reason":"x","n":1}"#, r#"{"a": 1.00 }"#);
        check_without(r#"{"a": 1.00 ,"reason":"x"}"#, r#"{"a": 1.00 }"#);
        check_without(
            "{\"a\": 1.0,\n  \"reason\": \"x\",\n  \"n\": 1\n}",
            r#"{"a": 1.0}"#,
        );
        // Members that the producer wrote before the added ones stay.
        check_without(r#"{"n": 5, "reason":"x"}"#, r#"{"n": 5}"#);
        check_without(
            r#"{"a": 1.0,"reason":"x","b" : [ 2 ], "n":1}"#,
            r#"{"a":1.0,"b":[ 2 ]}"#,
        );
        check_without(
            r#"{"reason":"x","\u0061\"\uffff" :1}"#,
            r#"{"\u0061\"\uffff":1}"#,
        );
        check_without(r#"{"reason":"x","n":1}"#, "{}");
        check_without(r#"{"a":1,"n":1}"#, r#"{"a":1,"n":1}"#);
        check_without("[]", "[]");
    }

    proptest! {
        #[test]
        fn what_was_laid_over_is_taken_off_without_a_trace(
            members in prop::collection::btree_map("[a-e\"\\\\é]{1,2}", "[ -~é]{0,6}", 1..6),
            space in "[ \t\n\r]{0,3}",
        ) {
            let json = |text: &str| serde_json::Value::from(text).to_string();
            let member = |(name, value): (&String, &String)| {
                format!("{space}{}{space}:{}", json(name), json(value))
            };
            let inside: Vec<_> = members.iter().map(member).collect();
            let event = Bytes::from(format!("{{{}{space}}}", inside.join(",")));
            let laid = with_members(&event, &[("reason", "1".to_owned()), ("n", "[2]".to_owned())]);
            prop_assert_eq!(without_members(&laid, "reason", &["reason", "n"]), event);
        }

        #[test]
        fn the_result_is_json_with_each_member_once(
            names in prop::collection::btree_set("[a-e\"é]{1,2}", 0..6),
        ) {
            let event: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), 0.into())).collect();
            let event = Bytes::from(serde_json::to_vec(&event).unwrap());
            let json = with_members(&event, &[("a", "1".to_owned())]);
            let value: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&json).unwrap();
            prop_assert_eq!(&value["a"], 1);
            prop_assert_eq!(value.len(), names.len() + usize::from(!names.contains("a")));
        }
    }
}
