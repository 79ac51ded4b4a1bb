//! Texts of every notation and with every mistake, without their secrets.

use serde_json::Value;

use super::*;

const S: &str = "s3cret";

/// Checks that nothing of a secret is shown, and that the text says so.
#[track_caller]
fn check_hidden(text: &str) -> String {
    let shown = hide_secrets(text);
    for secret in [S, "whsec_", "whsk_"] {
        assert!(!shown.to_lowercase().contains(secret), "{text}\n→ {shown}");
    }
    assert_ne!(shown, text);
    shown
}

#[track_caller]
fn check_shown(text: &str, expected: &str) {
    assert_eq!(check_hidden(text), expected, "{text}");
}

#[test]
fn settings_without_secrets_stay_as_they_are() {
    for text in [
        "",
        "# Mine\ninputSchema: <b>\n",
        "a: [\n",
        "endpoint:\n  url: https://secret.example:8443/?key=a:b\nfilter: { x: 1 }\n",
        "signing:\n  secrets:\n  - (masked:00000000)\n  - (masked:11111111)\n  expiresAt:\n  - null\n",
        "signing: { secrets: [(masked:00), (masked:11)], expiresAt: [null, null] }\na: b",
        "{\n  \"signing\": {\n    \"secrets\": [\n      \"(masked:00)\"\n    ]\n  },\n  \"a\": \"b\"\n}",
        "deliveryHeaders:\n- name: X-Api-Key\n  value: (masked)\n  isSecret: true\n- name: Y\n",
        "deliveryHeaders: [{ name: A, value: \"(masked)\", isSecret: true }]",
        "deliveryHeaders:\n- name: X-Tenant\n  value: acme\n",
        "#  - { name: A, value: \"Bearer ...\", isSecret: true }\n",
        "signing:\n  secrets: null\n",
    ] {
        assert_eq!(hide_secrets(text), text);
    }
}

/// The keys and values of filters are no secrets, though other members of these names may be.
#[test]
fn filters_stay_beside_secret_headers() {
    let filters = "filter:\n  advancedFilters:\n  - operatorType: NumberIn\n    key: data.a\n    values: [1]\n  \
        - key: data.b\n    operatorType: NumberLessThan\n    value: 5\n  \
        - { key: data.c, value: 7, operatorType: NumberLessThan }\n";
    let text = format!("{filters}deliveryHeaders:\n- {{ value: {S}, isSecret: true }}\n");
    let expected = "deliveryHeaders:\n- { value: \"\", isSecret: true }\n";
    check_shown(&text, &format!("{filters}{expected}"));
    let text = format!("- operatorType: x\n- value: {S}\n  isSecret: true\nkey: {S}");
    check_shown(
        &text,
        "- operatorType: x\n- value: \"\"\n  isSecret: true\nkey: \"\"",
    );
}

#[test]
fn secret_in_a_comment_is_hidden() {
    for (text, expected) in [
        (
            "secrets: [(masked)] # was whsec_MfKQ9r8G+/=",
            "secrets: [(masked)]",
        ),
        ("# was whsk_MfKQ9r8G, or so\na: b", "# was , or so\na: b"),
        ("a: b # WHSEC_abc", "a: b # "),
        ("- (masked) # s3cret", "- (masked) # s3cret"),
        (
            "# secrets:\n#   - s3cret\n# a: b",
            "# secrets:\n#   - \"\"\n# a: b",
        ),
        (
            "secrets:\n- (masked:00) # s3cret\n",
            "secrets:\n- (masked:00)\n",
        ),
        ("# key1: s3cret\n", "# key1: \"\"\n"),
    ] {
        assert_eq!(hide_secrets(text), expected, "{text}");
    }
}

#[test]
fn secret_of_a_mistyped_member_is_hidden() {
    for text in [
        "signing: { secret: s3cret }",
        "signing: { Secret: [s3cret, s3cret] }",
        "SECRETS: s3cret",
        "signingSecret : s3cret",
        "keys: { primary: s3cret }",
        "keys:\n  primary: s3cret\n  other:\n    deep: s3cret\n",
        "internalKey1: s3cret",
        "key 1: s3cret",
        "- { name: A, value: Bearer s3cret, issecret: true }",
        "- name: A\n  Value: Bearer s3cret\n  IsSecret: true\n",
        "- name: A\n  value: Bearer s3cret\n  is_secret: yes\n",
        "- 'value' : 'Bearer s3cret'\n  'isSecret' : 'true'\n",
        "- value: \"a, isSecret: true, s3cret\"",
    ] {
        check_hidden(text);
    }
    check_shown(
        "- { name: A, value: Bearer s3cret, issecret: true }",
        "- { name: A, value: \"\", isSecret: true }",
    );
}

#[test]
fn secret_in_json_is_hidden() {
    check_shown(
        "{\"value\": \"Bearer s3cret\",\n\"isSecret\": true}",
        "{\"value\": \"\",\n\"isSecret\": true}",
    );
    check_shown(
        "{\n  \"key1\":\"s3cret\",\n  \"a\":1\n}",
        "{\n  \"key1\":\"\",\n  \"a\":1\n}",
    );
    for text in [
        "{\"isSecret\":true,\"value\":\"Bearer s3cret\"}",
        "{\"secrets\":[\"s3cret\",\"s3cret\"]}",
        "{\"signing\": {\"secrets\": [\n\"s3cret\",\n\"s3cret: s3cret\"\n]}}",
        "{\"secrets\":\n[\n\"(masked)\",\n\"s3cret\"]}",
        "{\"secrets\": [\"(masked:00)\",\n\"s3cret: s3cret\"]}",
        "\"keys\" : {\n\"key1\" : \"s3cret\" ,\n\"key2\"\n:\n\"s3cret\"\n}",
        "{\"secrets\": [\"#s3cret\"]}",
    ] {
        check_hidden(text);
    }
}

#[test]
fn secret_below_its_member_is_hidden() {
    let header =
        "deliveryHeaders:\n- name: A\n  value: >-\n    Bearer\n\n    s3cret\n  isSecret: true\n";
    let expected = "deliveryHeaders:\n- name: A\n  value: \"\"\n\n\n\n  isSecret: true\n";
    check_shown(header, expected);
    check_shown(
        "secrets:\n- s3cret\n- (masked:00)\na: b",
        "secrets:\n- \"\"\n- (masked:00)\na: b",
    );
    for text in [
        "keys:\n  key1: |\n    s3cret\n    s3cret\n",
        "key1:\n  s3cret\nb: c",
        "key1:\ns3cret\nb: c",
        "key1: \"a\n  s3cret\"\nb: c",
        "key1: 'a\ns3cret'\nb: c",
        "secrets:\n  - s3cret\n  -\n    s3cret\n  - - s3cret\n",
        "secrets: # mine\n- s3cret\n",
        "secrets: &a\n- s3cret\n",
        "secrets: !!seq\n- s3cret\n",
        "secrets: [\ns3cret,\ns3cret\n]\n",
        "signing: { secrets: [(masked:00),\n s3cret] }\n",
        "- { name: A, value:\n  s3cret, isSecret: true }\n",
        "secrets:\n- (masked:00)\n# - s3cret\n",
    ] {
        check_hidden(text);
    }
}

/// The text after a hidden value is shown again.
#[test]
fn members_after_a_hidden_one_stay() {
    check_shown(
        "signing:\n  secrets:\n    - s3cret\n  expiresAt: [null]\nautoDeleteOnIdle: P9D\n",
        "signing:\n  secrets:\n    - \"\"\n  expiresAt: [null]\nautoDeleteOnIdle: P9D\n",
    );
    check_shown(
        "- { value: s3cret, isSecret: true },\n- { name: B, fromEvent: /id }\n",
        "- { value: \"\", isSecret: true },\n- { name: B, fromEvent: /id }\n",
    );
}

/// A header whose secret is cut says that it is one, and its settings can be read.
#[test]
fn hidden_text_is_read_as_yaml_again() {
    let text = format!(
        "signing: {{ secrets: [{S}] }}\ndeliveryHeaders:\n- {{ name: A, value: {S}, isSecret: true }}\n\
         keys:\n  key1: {S}\n"
    );
    let shown = check_hidden(&text);
    let read = posthaste_yaml::read_checked::<Value>(shown.as_bytes(), &|_| Ok(())).unwrap();
    let expected = serde_json::json!({
        "signing": { "secrets": [""] },
        "deliveryHeaders": [{ "name": "A", "value": "", "isSecret": true }],
        "keys": { "key1": "" },
    });
    assert_eq!(read, expected);
}
