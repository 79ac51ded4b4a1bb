//! Version 1 of a parked object: the messages of deliveries that fall due together.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{VERSION_1, WIRE_VERSION, WireError, unreadable};

#[derive(Deserialize)]
struct ParkedWire<'a> {
    v: u32,
    #[serde(borrow)]
    deliveries: Vec<&'a RawValue>,
}

/// Renders an object of delivery messages.
pub fn render_parked(messages: &[Bytes]) -> Bytes {
    let mut object = BytesMut::with_capacity(messages.iter().map(|m| m.len() + 1).sum::<usize>() + 32);
    object.put_slice(format!("{{\"v\":{VERSION_1},\"deliveries\":[").as_bytes());
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            object.put_u8(b',');
        }
        object.put_slice(message);
    }
    object.put_slice(b"]}");
    object.freeze()
}

/// Reads an object's messages, each a slice of it, not yet looked into.
pub fn parse_parked(object: &Bytes) -> Result<Vec<Bytes>, WireError> {
    let wire: ParkedWire<'_> = serde_json::from_slice(object).map_err(|error| unreadable(object, error))?;
    if wire.v > WIRE_VERSION {
        return Err(WireError::Newer(wire.v));
    }
    Ok(wire.deliveries.into_iter().map(|raw| object.slice_ref(raw.get().as_bytes())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_parked_and_read_as_they_were() {
        let messages = [Bytes::from_static(b"{\"v\":1}"), Bytes::from_static(b"{\"v\": 1.0 }")];
        let object = render_parked(&messages);
        assert_eq!(object, r#"{"v":1,"deliveries":[{"v":1},{"v": 1.0 }]}"#);
        assert_eq!(parse_parked(&object).unwrap(), messages);
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is_newer() {
        let parse = |text: &'static str| parse_parked(&Bytes::from_static(text.as_bytes()));
        assert!(matches!(parse("{}"), Err(WireError::Malformed(_))));
        assert!(matches!(parse(r#"{"v":4,"deliveries":[]}"#), Err(WireError::Newer(4))));
    }
}
