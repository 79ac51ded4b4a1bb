//! Message ids and receipts as text: numbers, so that nothing has to be looked up by a string.

use posthaste_ports::{MessageId, Receipt};

use crate::embedded::index::Received;

/// The id of a message: the folder it was sent in and its number there.
pub(super) fn message_id(folder_id: u64, sequence: u64) -> MessageId {
    MessageId(format!("{folder_id:016x}-{sequence:016x}"))
}

/// The receipt of one receive: receive counts start again with every opening of the folder.
pub(super) fn receipt(opening: u64, received: Received) -> Receipt {
    Receipt(format!("{opening:x}.{:x}.{:x}", received.sequence, received.count))
}

/// The receive that a receipt of this opening names.
pub(super) fn parse_receipt(opening: u64, receipt: &Receipt) -> Option<Received> {
    let mut numbers = receipt.0.split('.').map(|number| u64::from_str_radix(number, 16));
    let mut number = || numbers.next()?.ok();
    let (of, sequence, count) = (number()?, number()?, number()?);
    let count = u32::try_from(count).ok()?;
    (of == opening && numbers.next().is_none()).then_some(Received { sequence, count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_receipt_of_another_opening_or_of_nowhere_stands_for_nothing() {
        let received = Received { sequence: 77, count: 3 };
        let receipt = receipt(5, received);
        assert_eq!(receipt.0, "5.4d.3");
        assert_eq!(parse_receipt(5, &receipt), Some(received));
        assert_eq!(parse_receipt(6, &receipt), None);
        for text in ["", ".", "5", "5.4d", "5.4d.3.0", "5.4d.100000000", "x.y.z", "5..3", "no such receipt"] {
            assert_eq!(parse_receipt(5, &Receipt(text.to_owned())), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_receipt_survives_writing_and_reading(opening: u64, sequence: u64, count: u32) {
            let received = Received { sequence, count };
            prop_assert_eq!(parse_receipt(opening, &receipt(opening, received)), Some(received));
        }
    }
}
