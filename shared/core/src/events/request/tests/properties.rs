//! Arbitrary data, bodies and damage.

use proptest::prelude::*;

use super::*;
use crate::events::output;

/// JSON of any kind, with odd numbers and escapes, as text.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-1e999999".to_owned()),
        "[1-9][0-9]{0,30}(\\.[0-9]{1,30})?",
        ".{0,8}".prop_map(|text| serde_json::Value::from(text).to_string()),
        "(\\\\ud8[0-9a-f]{2}|\\\\/|\\\\n){0,4}".prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let array = proptest::collection::vec(inner.clone(), 0..4)
            .prop_map(|items| format!("[{}]", items.join(" ,\n")));
        let object = proptest::collection::vec(inner, 0..4).prop_map(|items| {
            let members: Vec<String> = items
                .iter()
                .enumerate()
                .map(|(n, item)| format!("\"m{}\" :{item}", n / 2))
                .collect();
            format!("{{ {}\t}}", members.join(","))
        });
        prop_oneof![array, object]
    })
}

proptest! {
    #[test]
    fn whatever_data_was_accepted_is_kept_byte_for_byte(data in any_json(), space in "[ \r\n\t]{0,3}") {
        let event = with_data(&format!("{space}{data}{space}"));
        let kept = cloud(BATCH, &format!("{space}[{space}{event}{space},{event}]{space}")).unwrap();
        prop_assert_eq!(kept, vec![event.clone(), event]);
    }

    #[test]
    fn binary_mode_comes_out_as_it_went_in(
        text in ".{0,12}",
        bytes in proptest::collection::vec(any::<u8>(), 0..20),
        content_type in
            prop_oneof![Just("text/plain"), Just("text/plain; charset=latin1"), Just("image/png")],
    ) {
        let subject: Vec<String> = format!("s{text}").bytes().map(|b| format!("%{b:02X}")).collect();
        let subject = subject.concat();
        let headers = [
            ("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/s"), ("ce-type", "t"),
            ("content-type", content_type), ("ce-subject", &subject),
        ];
        let has_control = text.chars().any(char::is_control);
        for body in [text.as_bytes(), &bytes] {
            match parse(EventSchema::CloudEvents, &headers, body) {
                Err(error) => prop_assert!(has_control, "{}", error),
                Ok(events) => {
                    let Some(out) = output::binary_request(events[0].json()).unwrap() else {
                        prop_assert!(body.is_empty(), "{text:?}");
                        continue;
                    };
                    prop_assert_eq!(&out.body, body);
                    prop_assert_eq!(out.headers.get("content-type").unwrap(), content_type);
                    let again = binary::render_json(&out.headers, Some(content_type), body).unwrap();
                    let again = Event::parse(EventSchema::CloudEvents, Bytes::from(again)).unwrap();
                    prop_assert_eq!(again.subject(), events[0].subject());
                }
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        content_type in
            prop_oneof![Just(STRUCTURED), Just(BATCH), Just("application/json"), Just("image/png")],
        value in "[ -~]{0,12}",
    ) {
        let headers = [("content-type", content_type), ("ce-id", &value)];
        for headers in [&headers[..], &headers[..1], &headers[1..]] {
            let _ = parse(EventSchema::CloudEvents, headers, &body);
            let _ = parse(EventSchema::EventGrid, headers, &body);
        }
    }

    #[test]
    fn a_damaged_event_never_panics_and_never_is_kept_as_invalid_json(
        at in 0_usize..200,
        byte in any::<u8>(),
    ) {
        for (schema, valid) in [(EventSchema::CloudEvents, MINIMAL), (EventSchema::EventGrid, GRID)] {
            let mut body = valid.as_bytes().to_vec();
            let at = at % body.len();
            body[at] = byte;
            for text in texts(schema, &[("content-type", "application/json")], &body).unwrap_or_default() {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
            }
        }
    }
}
