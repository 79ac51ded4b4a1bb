//! Algorithms by their object identifiers, as a certificate names them.

/// The tag of an object identifier in DER.
const OBJECT_ID_TAG: u8 = 0x06;

/// Algorithms that certificates of today may have and that ring lacks, and kinds of keys.
const NAMES: [(&str, &str); 16] = [
    ("1.2.840.10045.2.1", "a key on the curve"),
    ("1.2.840.10045.3.1.1", "P-192"),
    ("1.3.132.0.33", "P-224"),
    ("1.3.132.0.35", "P-521"),
    ("1.3.132.0.10", "secp256k1"),
    ("1.3.36.3.3.2.8.1.1.7", "brainpoolP256r1"),
    ("1.3.36.3.3.2.8.1.1.11", "brainpoolP384r1"),
    ("1.3.36.3.3.2.8.1.1.13", "brainpoolP512r1"),
    ("1.3.101.113", "Ed448"),
    ("1.2.840.113549.1.1.1", "an RSA key"),
    ("1.2.840.113549.1.1.4", "MD5 with RSA"),
    ("1.2.840.113549.1.1.5", "SHA-1 with RSA"),
    ("1.2.840.10045.4.1", "SHA-1 with ECDSA"),
    ("1.2.840.10045.4.3.4", "SHA-512 with ECDSA"),
    ("1.2.840.10040.4.1", "DSA"),
    ("2.16.840.1.101.3.4.3.2", "DSA"),
];

/// Every algorithm that an `AlgorithmIdentifier` names, by name where it has one here.
pub(super) fn shown_algorithms(identifier: &[u8]) -> String {
    let mut shown = Vec::new();
    let mut rest = identifier;
    while let [tag, length, after @ ..] = rest {
        let length = usize::from(*length);
        // An identifier is short: a length in several octets is none of one.
        let Some((value, after)) = after.split_at_checked(length) else {
            break;
        };
        if *tag == OBJECT_ID_TAG {
            let id = dotted_numbers(value);
            let name = NAMES.iter().find(|(known, _)| *known == id);
            shown.push(name.map_or(id.clone(), |(_, name)| (*name).to_owned()));
        }
        rest = after;
    }
    shown.join(" ")
}

/// The numbers of an object identifier (X.690, section 8.19).
fn dotted_numbers(value: &[u8]) -> String {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number = 0_u64;
    for octet in value {
        number = number.saturating_mul(128) | u64::from(octet & 0x7f);
        if octet & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    // The first two are one number.
    if let Some(first) = numbers.first().copied() {
        let root = (first / 40).min(2);
        numbers[0] = first - root * 40;
        numbers.insert(0, root);
    }
    let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
    numbers.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_named_or_numbered() {
        let check = |identifier: &[u8], expected| {
            assert_eq!(shown_algorithms(identifier), expected, "{identifier:x?}");
        };
        let ec_key = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01";
        check(
            &[ec_key, b"\x06\x05\x2b\x81\x04\x00\x23".as_slice()].concat(),
            "a key on the curve P-521",
        );
        check(b"\x06\x03\x2b\x65\x71", "Ed448");
        let sha1 = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05\x05\x00";
        check(sha1, "SHA-1 with RSA");
        check(b"\x06\x03\x2b\x65\x7f", "1.3.101.127");
        check(b"\x06\x03\x88\x37\x03", "2.999.3");
        for length in 0..sha1.len() - 2 {
            check(&sha1[..length], "");
        }
    }
}
