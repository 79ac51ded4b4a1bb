//! Writing a JSON object member by member, around parts that stay as they are.

use bytes::{BufMut, Bytes, BytesMut};

use super::json_text::escape_refused;

/// A JSON object on its way.
pub(crate) struct ObjectWriter(BytesMut);

impl ObjectWriter {
    /// An object without members, with room for this number of bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut json = BytesMut::with_capacity(bytes);
        json.put_u8(b'{');
        Self(json)
    }

    /// A member whose value is a text.
    pub(crate) fn add_text(&mut self, name: &str, value: &str) -> &mut Self {
        self.add_raw(name, quote_json_text(value).as_bytes())
    }

    /// A member whose value is JSON already. It goes in as it is.
    pub(crate) fn add_raw(&mut self, name: &str, json: &[u8]) -> &mut Self {
        if !self.0.ends_with(b"{") {
            self.0.put_u8(b',');
        }
        self.0.put_slice(quote_json_text(name).as_bytes());
        self.0.put_u8(b':');
        self.0.put_slice(json);
        self
    }

    /// The object.
    pub(crate) fn finish(mut self) -> Bytes {
        self.0.put_u8(b'}');
        self.0.freeze()
    }
}

/// The length in bytes that [`quote_json_text`] gives a text.
pub(crate) fn quoted_len(text: &str) -> usize {
    2 + text.chars().map(escaped_len).sum::<usize>()
}

fn escaped_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => 6,
        _ => c.len_utf8(),
    }
}

/// A text as JSON, without any character that SQS refuses.
pub(crate) fn quote_json_text(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    escape_refused(&json).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_are_written_in_order_and_raw_ones_as_they_are() {
        let mut object = ObjectWriter::with_capacity(0);
        object
            .add_text("a\"", "x\n\u{ffff}")
            .add_raw("n", b" 1.00 ")
            .add_text("e", "");
        assert_eq!(object.finish(), r#"{"a\"":"x\n\uffff","n": 1.00 ,"e":""}"#);
        assert_eq!(ObjectWriter::with_capacity(9).finish(), "{}");
    }

    proptest! {
        #[test]
        fn the_length_is_known_before(text in "(.|[\0-\u{20}\"\\\\\u{7f}-\u{9f}\u{fffd}-\u{10000}]){0,30}") {
            prop_assert_eq!(quoted_len(&text), quote_json_text(&text).len());
        }
    }
}
