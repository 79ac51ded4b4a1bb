//! Statuses that are asked for: one of them, or a class.

/// Some statuses of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    first: u16,
    last: u16,
}

impl StatusRange {
    /// Reads a status such as `503`, or a class of them such as `5xx`.
    pub fn parse(text: &str) -> Option<Self> {
        let [class @ b'1'..=b'9', rest @ ..] = text.as_bytes() else {
            return None;
        };
        let first = u16::from(class - b'0') * 100;
        match rest {
            b"xx" | b"XX" => Some(Self {
                first,
                last: first + 99,
            }),
            [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => Some(Self::from(
                first + u16::from(tens - b'0') * 10 + u16::from(ones - b'0'),
            )),
            _ => None,
        }
    }

    /// Whether a status is one of them.
    pub const fn contains(self, status: u16) -> bool {
        self.first <= status && status <= self.last
    }

    /// The first and the last of them.
    pub const fn bounds(self) -> (u16, u16) {
        (self.first, self.last)
    }
}

impl From<u16> for StatusRange {
    fn from(status: u16) -> Self {
        Self {
            first: status,
            last: status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_or_a_class_is_read() {
        let check = |text: &str, bounds| {
            assert_eq!(
                StatusRange::parse(text).map(StatusRange::bounds),
                bounds,
                "{text}"
            );
        };
        check("503", Some((503, 503)));
        check("5xx", Some((500, 599)));
        check("2XX", Some((200, 299)));
        for bad in [
            "", "5", "50", "5x", "5xX", "xxx", "0xx", "099", "5000", "5xxx", "-50", "5ü",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn a_class_contains_its_statuses() {
        let class = StatusRange::parse("4xx").unwrap();
        assert_eq!(
            [399, 400, 499, 500].map(|status| class.contains(status)),
            [false, true, true, false]
        );
    }
}
