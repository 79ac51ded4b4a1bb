use url::form_urlencoded;

use super::*;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn typed(fields: &[(&str, &str)]) -> Option<TypedSettings> {
    let mut body = form_urlencoded::Serializer::new(String::new());
    let body = body.extend_pairs(fields).finish();
    TypedSettings::from_form(&FormFields::parse(body.as_bytes()).unwrap())
}

fn shown(text: &str) -> TypedSettings {
    typed(&[("text", text)]).unwrap_or_else(|| panic!("{text}"))
}

/// The settings that are shown for these.
fn shown_settings(text: &str) -> Value {
    let shown = shown(text);
    assert!(shown.is_shortened, "{shown:?}");
    posthaste_yaml::read_checked(shown.text.as_bytes(), &|_| Ok(())).unwrap()
}

#[test]
fn typed_fields_are_laid_over_their_text() {
    let base = "endpoint:\n  url: https://a.example/\nsigning:\n  secrets: [(masked)]\n";
    let fields = [
        ("base", base),
        ("endpoint.url", "https://b.example/<b>"),
        ("filter.subjectBeginsWith", "orders/"),
        ("retryPolicy.maxDeliveryAttempts", "many"),
    ];
    let typed = typed(&fields).unwrap();
    for expected in [
        "url: https://b.example/<b>",
        "subjectBeginsWith: orders/",
        "maxDeliveryAttempts: many",
        "(masked)",
    ] {
        assert!(typed.text.contains(expected), "{expected}: {typed:?}");
    }
    assert!(!typed.is_shortened);
}

#[test]
fn typed_fields_of_a_topic_are_laid_over_its_text() {
    let fields = [("base", "inputSchema: Custom\n"), ("deliveryLog", "off")];
    let typed = typed(&fields).unwrap();
    assert!(typed.text.contains("inputSchema: Custom"), "{typed:?}");
    assert!(typed.text.contains("deliveryLog: "), "{typed:?}");
}

/// A text that is no YAML may have a secret anywhere, and aliases are not expanded.
#[test]
fn text_that_cannot_be_read_is_not_given_back() {
    let long = "x".repeat(20_000);
    let bomb = format!("a: &a {long}\nb: [{}]\n", "*a, ".repeat(900));
    for text in ["a: [\n", "a: 1\na: 2\n", "- b\nc: d\n", &bomb] {
        assert_eq!(typed(&[("text", text)]), None, "{}", &text[..8]);
        let fields = [("base", text), ("endpoint.url", "https://b.example/")];
        assert_eq!(typed(&fields), None, "{}", &text[..8]);
    }
    assert!(!may_have_alias("a: Orders.*") && may_have_alias("a: [*b]"));
}

#[test]
fn text_longer_than_the_editor_takes_is_not_given_back() {
    let longest = "x".repeat(TEXT_BYTES_MAX);
    assert!(typed(&[("text", &longest)]).is_some());
    let longer = format!("{longest}x");
    assert_eq!(typed(&[("text", &longer)]), None);
    assert_eq!(typed(&[("base", &longer)]), None);
    let filled = [("base", "endpoint: {}\n"), ("endpoint.url", &longest)];
    assert_eq!(typed(&filled), None);
}

#[test]
fn secrets_are_left_out_and_masks_stay() {
    let text = format!(
        "endpoint: {{ url: https://turnkey:8443/x }}\n\
         signing: {{ secrets: [{SECRET}, (masked:00000000)], expiresAt: [null] }} # {SECRET}\n\
         deliveryHeaders:\n- {{ name: A, value: Bearer s3cret, isSecret: true }}\n\
         - {{ name: B, value: open }}\n- {{ name: C, value: (masked), isSecret: true }}\n\
         filter:\n  advancedFilters: [{{ operatorType: StringIn, key: data.a, values: [a] }}]\n\
         keys: {{ key1: s3cret, key2: 12345 }}\n"
    );
    let expected = serde_json::json!({
        "endpoint": { "url": "https://turnkey:8443/x" },
        "signing": { "secrets": ["", "(masked:00000000)"], "expiresAt": [null] },
        "deliveryHeaders": [
            { "name": "A", "value": "", "isSecret": true },
            { "name": "B", "value": "open" },
            { "name": "C", "value": "(masked)", "isSecret": true },
        ],
        "filter": {
            "advancedFilters": [{ "operatorType": "StringIn", "key": "data.a", "values": ["a"] }],
        },
        "keys": { "key1": "", "key2": "" },
    });
    assert_eq!(shown_settings(&text), expected);
}

/// A mistyped secret hides itself alone.
#[test]
fn mistyped_secret_hides_nothing_beside_it() {
    let settings = shown_settings("secret: s3cret\nendpoint: { url: 'https://a.example/' }\n");
    let expected = serde_json::json!({ "secret": "", "endpoint": { "url": "https://a.example/" } });
    assert_eq!(settings, expected);
}

/// A mistake in a name gives nothing away.
#[test]
fn mistyped_secrets_are_left_out() {
    for text in [
        "deliveryHeaders: { Authorization: Bearer s3cret }",
        "deliveryHeaders: [{ Authorization: Bearer s3cret, isSecret: true }]",
        "deliveryHeaders: [{ name: A, value: s3cret, secret: true }]",
        "deliveryHeaders: [{ name: A, value: s3cret, isHidden: true }]",
        "DeliveryHeaders: [s3cret]",
        "headers: { X-Key: s3cret }",
        "header: { name: A, value: s3cret, isSecret: yes }",
        "signing: { secret: s3cret }",
        "Signing: { Secrets: { new: s3cret } }",
        "{\"signing\": {\"\\u0073ecrets\"\n: [\"s3cret\"]}}",
        "? key1\n: s3cret",
        "keys: { key1: (masked by s3cret) }",
        "signing: !!map { secrets: [!!str s3cret] }",
        "signing:\n  secrets:\n  - |\n    s3cret\n    s3cret",
        "topic: whsec_s3cret",
    ] {
        let shown = shown(text);
        assert!(
            shown.is_shortened && !shown.text.contains("s3cret"),
            "{text}: {shown:?}"
        );
    }
}

#[test]
fn comments_are_left_out() {
    let shown = shown("# secrets: s3cret\ninputSchema: <b>\n");
    assert_eq!(shown.text, "inputSchema: <b>\n");
    assert!(shown.is_shortened);
}

/// A secret is taken out of a text that fields were laid over too.
#[test]
fn typed_fields_come_without_the_secrets_of_their_text() {
    let base = format!("endpoint: {{ url: x }}\nsigning:\n  secrets: [{SECRET}]\n");
    let fields = [
        ("base", base.as_str()),
        ("endpoint.url", "https://b.example/"),
    ];
    let typed = typed(&fields).unwrap();
    assert!(
        typed.is_shortened && !typed.text.contains("whsec_"),
        "{typed:?}"
    );
    assert!(typed.text.contains("url: https://b.example/"), "{typed:?}");
}

#[test]
fn text_without_secrets_stays_as_it_was_typed() {
    let text = "inputSchema:   <b>\nendpoint: { url: 'https://a.example/' }\n";
    let shown = shown(text);
    assert_eq!(shown.text, text);
    assert!(!shown.is_shortened);
    assert_eq!(typed(&[("name", "orders")]), None);
}

/// Braces in place of brackets make a name of a secret.
#[test]
fn secret_that_is_no_value_is_left_out() {
    for text in [
        format!("signing:\n  secrets: {{ {SECRET} }}\n"),
        "keys: { s3cret }\n".to_owned(),
        "internalKey1: s3cret\n".to_owned(),
        format!("endpoint: {{ {SECRET}: 1 }}\n"),
        format!("labels: {{ a: 1 }}\n...\n{SECRET}: [\n"),
        format!("%YAML 1.2\n---\nlabels: {{ a: 1 }}\n...\n- {SECRET}\n"),
    ] {
        if let Some(typed) = typed(&[("text", &text)]) {
            assert!(typed.is_shortened, "{text}: {typed:?}");
            let is_shown = typed.text.contains(SECRET) || typed.text.contains("s3cret");
            assert!(!is_shown, "{text}: {typed:?}");
        }
    }
}

#[test]
fn members_without_a_value_keep_no_form_back() {
    let fields = [
        (
            "base",
            "endpoint: { url: https://a.example/, fallbackUrl: null }\nretryPolicy:\n",
        ),
        ("endpoint.url", "https://b.example/"),
    ];
    let typed = typed(&fields).unwrap();
    assert!(typed.text.contains("https://b.example/"), "{typed:?}");
}
