use proptest::prelude::*;

use super::*;

const MASK: &str = "(masked)";
const SECRET: &str = "a/b+c\"d\\e&f=g'h <ü😀>%2F";

fn check(text: &str, expected: &str) {
    let found = mask_secrets(text, &[SECRET], TextExtent::Whole, MASK);
    assert_eq!(found, expected, "{text}");
}

/// Writes characters outside of ASCII, and those of `special`, as JSON's `\u`.
fn unicode(text: &str, special: &str, is_upper: bool) -> String {
    let escape = |c: char| {
        let mut units = [0; 2];
        c.encode_utf16(&mut units)
            .iter()
            .map(|unit| {
                if is_upper {
                    format!("\\u{unit:04X}")
                } else {
                    format!("\\u{unit:04x}")
                }
            })
            .collect()
    };
    let one = |c: char| match c {
        _ if special.contains(c) || !c.is_ascii() => escape(c),
        _ => c.to_string(),
    };
    text.chars().map(one).collect()
}

/// The escapes that every JSON library writes.
fn json(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"")
}

/// Python's `json.dumps`: everything outside of ASCII, in lower case.
fn python_json(text: &str) -> String {
    unicode(&json(text), "", false)
}

/// PHP's `json_encode`: the slash too.
fn php_json(text: &str) -> String {
    unicode(&json(text).replace('/', r"\/"), "", false)
}

/// PHP's `json_encode` with `JSON_HEX_TAG | JSON_HEX_AMP | JSON_HEX_APOS | JSON_HEX_QUOT`.
fn php_hex_json(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('/', r"\/");
    unicode(&escaped, "<>&'\"", true)
}

/// Go's `encoding/json`: what HTML could mistake.
fn go_json(text: &str) -> String {
    json(text)
        .replace('<', r"\u003c")
        .replace('>', r"\u003e")
        .replace('&', r"\u0026")
}

/// Java's Gson: the same, the equals sign and the apostrophe.
fn gson(text: &str) -> String {
    go_json(text)
        .replace('=', r"\u003d")
        .replace('\'', r"\u0027")
}

/// .NET's `System.Text.Json`: also the plus, the quotation mark and what is not ASCII, in capitals.
fn dot_net_json(text: &str) -> String {
    let escaped = text.replace('\\', r"\\");
    unicode(&escaped, "<>&'\"+`", true)
}

fn percent(text: &str, kept: &str, is_upper: bool) -> String {
    let one = |byte: u8| match char::from(byte) {
        c if c.is_ascii_alphanumeric() || kept.contains(c) => c.to_string(),
        _ if is_upper => format!("%{byte:02X}"),
        _ => format!("%{byte:02x}"),
    };
    text.bytes().map(one).collect()
}

/// JavaScript's `encodeURIComponent`.
fn encode_uri_component(text: &str) -> String {
    percent(text, "-_.!~*'()", true)
}

/// JavaScript's `encodeURI`, which leaves what has a meaning in a URL.
fn encode_uri(text: &str) -> String {
    percent(text, "-_.!~*'();/?:@&=+$,#", true)
}

/// `URLSearchParams`, PHP's `urlencode`, Python's `quote_plus`.
fn form(text: &str) -> String {
    percent(text, "*-._ ", true).replace(' ', "+")
}

/// Java's and .NET's older encoders, in lower case.
fn lower_percent(text: &str) -> String {
    percent(text, "-_.", false)
}

/// Ruby's `CGI.escapeHTML`, Go's `html.EscapeString`, Python's `html.escape`.
fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// OWASP's encoders, and those of Java's template engines.
fn numeric_html(text: &str) -> String {
    html(text)
        .replace('/', "&#x2F;")
        .replace('=', "&#61;")
        .replace('+', "&#x2b;")
}

const ESCAPERS: [fn(&str) -> String; 14] = [
    str::to_owned,
    json,
    python_json,
    php_json,
    php_hex_json,
    go_json,
    gson,
    dot_net_json,
    encode_uri_component,
    encode_uri,
    form,
    lower_percent,
    html,
    numeric_html,
];

#[test]
fn secret_is_found_however_one_library_writes_it() {
    for escaper in ESCAPERS {
        check(&format!("x={};", escaper(SECRET)), "x=(masked);");
    }
}

#[test]
fn secret_is_found_however_two_libraries_write_it() {
    for inner in ESCAPERS {
        for outer in ESCAPERS {
            check(&format!("x={};", outer(&inner(SECRET))), "x=(masked);");
        }
    }
}

#[test]
fn word_of_a_secret_and_a_secret_without_prefix_are_found() {
    let signing = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La/aSw";
    let secrets = [signing, "Bearer abc\"def/ghi", "on", ""];
    let check = |text: &str, expected: &str| {
        assert_eq!(
            mask_secrets(text, &secrets, TextExtent::Whole, MASK),
            expected
        );
    };
    check(signing, MASK);
    check(r"a MfKQ9r8GKYqrTwjUPD8ILPZIo2La\/aSw b", "a (masked) b");
    check(r#"token abc\"def\/ghi!"#, "token (masked)!");
    check("Bearer abc, on and on", "Bearer abc, on and on");
    assert_eq!(
        mask_secrets(
            "whsk_0123456789",
            &["whsk_0123456789"],
            TextExtent::Whole,
            MASK
        ),
        MASK
    );
}

#[test]
fn beginning_of_a_secret_at_a_cut_is_found() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            mask_secrets(text, &["a/b+cdefgh"], TextExtent::Cut, MASK),
            expected
        );
        assert_eq!(
            mask_secrets(text, &["a/b+cdefgh"], TextExtent::Whole, MASK),
            text
        );
    };
    check("key a/b+", "key (masked)");
    check(r"key a\/b+c", "key (masked)");
    check(r"key a\/b\u002bc", "key (masked)");
    // Within an escape, of which the beginning is left.
    check(r"key a\/b+c\", "key (masked)");
    check(r"key a\/b+c\u00", "key (masked)");
    check("key a%2Fb%2Bc%", "key (masked)");
    check("key a%2Fb%2Bc%6", "key (masked)");
    check("key a&#x2f;b&#43;c&#x6", "key (masked)");
    check("key a/b", "key a/b");
}

#[test]
fn number_of_a_character_may_begin_with_any_zeros() {
    for zeros in [0, 1, 8, 100, 5000] {
        let zeros = "0".repeat(zeros);
        let echo = format!("a&#x{zeros}2f;b&#{zeros}43;cdefgh");
        let secrets = ["a/b+cdefgh"];
        assert_eq!(mask_secrets(&echo, &secrets, TextExtent::Whole, MASK), MASK);
        let cut = format!("a&#x{zeros}2F;b&#{zeros}43;c&#x{zeros}");
        assert_eq!(mask_secrets(&cut, &secrets, TextExtent::Cut, MASK), MASK);
    }
}

#[test]
fn text_without_escapes_stays_as_it_is() {
    for text in [
        "100 % of it + more & more; &c. \\ \\x \\u12 \\ud83d \\ud83d\\u0041 %zz %2 &#; &#x; &nope;",
        "%",
        "\\",
        "&",
        "+",
        "\\u",
        "\\u+123",
        "&#+12;",
        "",
    ] {
        check(text, text);
        assert_eq!(
            mask_secrets(text, &["nothing of it"], TextExtent::Cut, MASK),
            text
        );
    }
}

#[test]
fn overlapping_secrets_are_one_place() {
    let secrets = ["abcdef", "defgh"];
    assert_eq!(
        mask_secrets("1abcdefgh2", &secrets, TextExtent::Whole, MASK),
        "1(masked)2"
    );
    assert_eq!(
        mask_secrets("aaaaaa", &["aaaa"], TextExtent::Whole, MASK),
        MASK
    );
}

#[test]
fn secrets_side_by_side_are_one_place() {
    let found = mask_secrets("1abcddefg2", &["abcd", "defg"], TextExtent::Whole, MASK);
    assert_eq!(found, "1(masked)2");
}

#[test]
fn secret_with_control_characters_is_found_in_json() {
    let found = mask_secrets(
        r"a\b\f\n\r\tz",
        &["a\u{8}\u{c}\n\r\tz"],
        TextExtent::Whole,
        MASK,
    );
    assert_eq!(found, MASK);
}

proptest! {
    #[test]
    fn no_secret_is_left_by_any_escapers(
        secret in "[a-zA-Z0-9+/=\\\\\"'<>&% ü😀.-]{8,24}",
        inner in 0..ESCAPERS.len(),
        outer in 0..ESCAPERS.len(),
        before in "[a-z{}:\", ]{0,12}",
        after in "[a-z{}:\", ]{0,12}",
    ) {
        // Blanks at its ends would be those of the text around it.
        let secret = format!("x{secret}x");
        let echo = ESCAPERS[outer](&ESCAPERS[inner](&secret));
        let clean = mask_secrets(&format!("{before}|{echo}|{after}"), &[&secret], TextExtent::Whole, MASK);
        prop_assert_eq!(clean, format!("{before}|(masked)|{after}"));
    }

    #[test]
    fn nothing_panics_and_a_whole_text_without_secrets_stays(
        text in "[a-f0-9\\\\u%&#;x+ü]{0,60}",
        secret in "[a-zü]{1,9}!",
    ) {
        prop_assert_eq!(mask_secrets(&text, &[&secret], TextExtent::Whole, MASK), text.clone());
        mask_secrets(&text, &[&secret, &text], TextExtent::Cut, MASK);
    }
}
