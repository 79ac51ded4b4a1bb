//! Members taken out of a kept event's text, and restored at their places, byte for byte.

use bytes::Bytes;

use super::members::EventMembers;

/// The last member of what is set aside: the places of the others among the event's members,
/// from 0.
const PLACES: &str = "places";

/// An event's text in two.
#[derive(Debug, PartialEq, Eq)]
pub struct SetAside {
    /// The event without the members.
    pub event: Bytes,
    /// The members as they were written: a JSON object.
    pub members: String,
}

/// Takes the members of these names out of an event. `None` where it has none of them, or is no
/// object.
pub fn set_aside(event: &Bytes, names: &[&str]) -> Option<SetAside> {
    let (text, members) = EventMembers::from_event_text(event)?;
    let mut left = Vec::new();
    let mut taken = Vec::new();
    let mut places = Vec::new();
    for (place, ((name, _), span)) in members.iter().zip(member_spans(text, &members)).enumerate() {
        if names.contains(&name) {
            taken.push(span);
            places.push(place);
        } else {
            left.push(span);
        }
    }
    if taken.is_empty() {
        return None;
    }
    let places = serde_json::Value::from(places);
    Some(SetAside {
        event: Bytes::from(format!("{{{}}}", left.join(","))),
        members: format!("{{{},\"{PLACES}\":{places}}}", taken.join(",")),
    })
}

/// The inverse of [`set_aside`]. `None` where `members` are not what it set aside.
pub fn put_back(event: &Bytes, members: &str) -> Option<Bytes> {
    let (text, present) = EventMembers::from_event_text(event)?;
    let aside = EventMembers::parse(members).ok()?;
    let places: Vec<usize> = serde_json::from_str(aside.find_value(PLACES)?.json()).ok()?;
    let mut all = member_spans(text, &present);
    let taken = member_spans(members, &aside);
    if places.len() + 1 != taken.len() {
        return None;
    }
    for (place, span) in places.into_iter().zip(taken) {
        if place > all.len() {
            return None;
        }
        all.insert(place, span);
    }
    let json = format!("{{{}}}", all.join(","));
    // A member that stands twice would make it no event.
    EventMembers::parse(&json)
        .is_ok()
        .then(|| Bytes::from(json))
}

/// The JSON text of the member `name`, if it stands behind the member `first`.
pub fn value_behind<'a>(event: &'a Bytes, first: &str, name: &str) -> Option<&'a str> {
    let (_, members) = EventMembers::from_event_text(event)?;
    let mut behind = members.iter().skip_while(|(found, _)| *found != first);
    behind
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.json())
}

/// Each member as it is written, with the white space around it: what lies between the braces and
/// the commas.
fn member_spans<'a>(text: &'a str, members: &EventMembers<'a>) -> Vec<&'a str> {
    let mut start = text.find('{').map_or(0, |brace| brace + 1);
    let mut spans = Vec::new();
    for (_, value) in members.iter() {
        let value = value.json();
        let end = value.as_ptr().addr() - text.as_ptr().addr() + value.len();
        // Only white space stands between a value and what ends its member.
        let end = text[end..]
            .find([',', '}'])
            .map_or(text.len(), |after| end + after);
        spans.push(&text[start.min(end)..end]);
        start = end + 1;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(event: &'static str, left: &str, members: &str) {
        let event = Bytes::from_static(event.as_bytes());
        let aside = set_aside(&event, &["a", "b"]).unwrap();
        assert_eq!((&*aside.event, &*aside.members), (left.as_bytes(), members));
        assert_eq!(put_back(&aside.event, &aside.members), Some(event));
    }

    #[test]
    fn members_are_taken_out_as_they_stand_and_put_back() {
        check(r#"{"a":1}"#, "{}", r#"{"a":1,"places":[0]}"#);
        check(
            r#"{"a" : [1, 2] ,"x":"a,}"}"#,
            r#"{"x":"a,}"}"#,
            r#"{"a" : [1, 2] ,"places":[0]}"#,
        );
        check(
            "{ \"x\": 1,\n  \"\\u0061\": \"\\uFFFF\",\n \"y\":2, \"b\": {} }",
            "{ \"x\": 1,\n \"y\":2}",
            "{\n  \"\\u0061\": \"\\uFFFF\", \"b\": {} ,\"places\":[1,3]}",
        );
    }

    #[test]
    fn absent_members_are_not_set_aside() {
        for event in [r#"{"x":1}"#, "{}", "[]", "\u{ff}"] {
            assert_eq!(set_aside(&Bytes::from(event), &["a"]), None);
        }
    }

    #[test]
    fn members_not_set_aside_are_not_put_back() {
        let event = Bytes::from_static(br#"{"x":1}"#);
        for members in [
            "",
            "[]",
            "{}",
            r#"{"a":1}"#,
            r#"{"a":1,"places":1}"#,
            r#"{"a":1,"places":[]}"#,
            r#"{"a":1,"places":[2]}"#,
        ] {
            assert_eq!(put_back(&event, members), None, "{members}");
        }
        assert_eq!(put_back(&event, r#"{"x":2,"places":[0]}"#), None);
    }

    #[test]
    fn a_value_is_found_behind_another_only() {
        let event = Bytes::from_static(br#"{"b":1,"a":2,"c":[3]}"#);
        assert_eq!(value_behind(&event, "a", "c"), Some("[3]"));
        assert_eq!(value_behind(&event, "a", "b"), None);
        assert_eq!(value_behind(&event, "z", "b"), None);
    }

    proptest! {
        #[test]
        fn taking_out_and_putting_back_changes_nothing(
            members in prop::collection::btree_map("[a-e\"\\\\é]{1,2}", "[ -~é,}{]{0,6}", 0..8),
            space in "[ \t\n\r]{0,3}",
        ) {
            let json = |text: &str| serde_json::Value::from(text).to_string();
            let member = |(name, value): (&String, &String)| {
                format!("{space}{}{space}:{}{space}", json(name), json(value))
            };
            let inside: Vec<_> = members.iter().map(member).collect();
            let event = Bytes::from(format!("{{{}}}", inside.join(",")));
            match set_aside(&event, &["a", "b", "c", "é"]) {
                Some(aside) => prop_assert_eq!(put_back(&aside.event, &aside.members), Some(event)),
                None => prop_assert!(!["a", "b", "c", "é"].iter().any(|name| members.contains_key(*name))),
            }
        }
    }
}
