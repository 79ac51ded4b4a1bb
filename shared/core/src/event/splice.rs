//! Members laid over a kept event's text, the rest of it as it was written.

use bytes::{BufMut, Bytes, BytesMut};

use super::members::Members;

/// The event's JSON object with these members at its end; members of the same names are left out of it. `value` is JSON.
///
/// A text that is not an object (no accepted event is one) comes back as it is.
pub fn with_members(event: &Bytes, members: &[(&str, String)]) -> Bytes {
    let text = std::str::from_utf8(event).ok().and_then(|text| Members::read(text).ok());
    let Some(present) = text else { return event.clone() };
    let is_new = |name: &str| !members.iter().any(|(laid, _)| *laid == name);
    let room: usize = members.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let mut json = BytesMut::with_capacity(event.len() + room);
    if present.iter().all(|(name, _)| is_new(name)) {
        json.put_slice(event.trim_ascii_end().strip_suffix(b"}").unwrap_or(event).trim_ascii_end());
    } else {
        json.put_u8(b'{');
        for (name, value) in present.iter().filter(|(name, _)| is_new(name)) {
            put_member(&mut json, name, value.json());
        }
    }
    for (name, value) in members {
        put_member(&mut json, name, value);
    }
    json.put_u8(b'}');
    json.freeze()
}

fn put_member(json: &mut BytesMut, name: &str, value: &str) {
    if !json.ends_with(b"{") {
        json.put_u8(b',');
    }
    json.put_slice(serde_json::Value::from(name).to_string().as_bytes());
    json.put_u8(b':');
    json.put_slice(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(event: &'static str, expected: &str) {
        let members = [("reason", "\"x\"".to_owned()), ("n", "1".to_owned())];
        assert_eq!(with_members(&Bytes::from_static(event.as_bytes()), &members), expected);
    }

    #[test]
    fn members_are_laid_over_the_text_as_it_is() {
        check(r#"{"a": 1.00 }"#, r#"{"a": 1.00,"reason":"x","n":1}"#);
        check("{}", r#"{"reason":"x","n":1}"#);
        check("{ }", r#"{"reason":"x","n":1}"#);
        check(r#"{"n":5,"a" : [ 1 ],"\u0072eason":"old"}"#, r#"{"a":[ 1 ],"reason":"x","n":1}"#);
        check("[]", "[]");
    }

    proptest! {
        #[test]
        fn the_result_is_json_with_each_member_once(names in prop::collection::btree_set("[a-e\"é]{1,2}", 0..6)) {
            let event: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), 0.into())).collect();
            let event = Bytes::from(serde_json::to_vec(&event).unwrap());
            let json = with_members(&event, &[("a", "1".to_owned())]);
            let value: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&json).unwrap();
            prop_assert_eq!(&value["a"], 1);
            prop_assert_eq!(value.len(), names.len() + usize::from(!names.contains("a")));
        }
    }
}
