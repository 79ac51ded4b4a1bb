//! Dead letters of another installation.

use posthaste_core::model::{
    DEAD_LETTER_IMPORT_BYTES_MAX, DEAD_LETTER_IMPORT_OBJECTS_MAX, MANAGE_REQUEST_BYTES_MAX,
};
use posthaste_core::stored::{ResolvedLetters, layout};
use posthaste_ports::ErrorKind;
use serde_json::{Value, json};

use super::{Answer, Api};

const A: &str = "ORDERS/BILLING/2026/3/7/4/a.json";
const B: &str = "ORDERS/BILLING/2026/3/8/4/b.json";
const C: &str = "STOCK/AUDIT/2026/3/8/4/c.json";

/// A letter as its producer wrote the event, with a line break and a number that JSON would change.
const LETTER: &str = "{\"id\":\"1\",\n \"n\":1.00,\"deadletterreason\":\"EndpointGone\"}";

fn object(key: &str, resolved: Option<&str>) -> String {
    let resolved = resolved.map_or_else(String::new, |list| format!(",\"resolved\":{list}"));
    format!("{{\"object\":\"{key}\",\"letters\":[{LETTER},{LETTER}]{resolved}}}")
}

async fn import(api: &Api, objects: &[String]) -> Answer {
    let body = format!("{{\"objects\":[{}]}}", objects.join(","));
    import_body(api, body).await
}

async fn import_body(api: &Api, body: String) -> Answer {
    let json = [("content-type", "application/json")];
    api.call("POST", "/dead-letters/import", &json, body).await
}

fn stored(api: &Api, key: &str) -> Option<String> {
    let bytes = api.dead_letters.read(key)?;
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

fn resolved(api: &Api, key: &str) -> Option<ResolvedLetters> {
    let list = api.dead_letters.read(&layout::resolved_letters_key(key))?;
    Some(ResolvedLetters::parse(&list).unwrap())
}

const NEWER: &str = r#"{"v":1,"letters":[[1,1]],"newer":[{"object":"ORDERS/BILLING/2026/3/8/4/b.json","letters":[[1,0]]}]}"#;

#[tokio::test]
async fn objects_keep_their_keys_their_bytes_and_what_is_resolved() {
    let api = Api::new();
    let objects = [object(A, Some(NEWER)), object(B, None), object(C, None)];
    let answer = import(&api, &objects).await;
    let expected = json!({
        "objects": 3, "deadLetters": 6, "resolved": 1, "leftObjects": 0, "leftDeadLetters": 0,
    });
    assert_eq!((answer.status, answer.json()), (200, expected));
    let text = format!("[{LETTER},{LETTER}]");
    for key in [A, B, C] {
        assert_eq!(stored(&api, key).as_deref(), Some(&*text), "{key}");
    }
    let expected = ResolvedLetters::parse(NEWER.as_bytes()).unwrap();
    assert_eq!(resolved(&api, A), Some(expected));
    assert_eq!(api.dead_letters.keys(layout::RESOLVED).len(), 1);
    let page = api.get("/dead-letters").await.json();
    let rows = page["deadLetters"].as_array().unwrap();
    let of_a = rows.iter().filter(|row| row["object"] == A);
    let places: Vec<_> = of_a.map(|row| row["index"].clone()).collect();
    assert_eq!((rows.len(), places), (5, vec![json!(0)]));
}

#[tokio::test]
async fn object_that_is_there_stays_as_it_is() {
    let api = Api::new();
    api.dead_letters.write(A, "[]");
    let again = [object(A, Some(NEWER)), object(B, None)];
    let answer = import(&api, &again).await.json();
    let numbers = ["objects", "deadLetters", "leftObjects", "leftDeadLetters"];
    let counts = |answer: &Value| numbers.map(|name| answer[name].as_u64().unwrap());
    assert_eq!(counts(&answer), [1, 2, 1, 2]);
    assert_eq!(stored(&api, A).as_deref(), Some("[]"));
    assert_eq!(resolved(&api, A), None);
    let answer = import(&api, &again).await.json();
    assert_eq!(counts(&answer), [0, 0, 2, 4]);
}

/// Somebody deleted the object with another tool, and wake has not deleted its list yet.
#[tokio::test]
async fn list_of_a_former_object_is_not_taken_over() {
    let api = Api::new();
    for key in [A, B] {
        let list = ResolvedLetters::from_places([0, 1]).render();
        api.dead_letters
            .write(&layout::resolved_letters_key(key), list);
    }
    let answer = import(&api, &[object(A, Some(NEWER)), object(B, None)]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(resolved(&api, A).unwrap().places, [1].into());
    assert_eq!(resolved(&api, B), Some(ResolvedLetters::default()));
}

#[tokio::test]
async fn import_that_a_store_cut_short_is_made_whole_by_the_next_one() {
    let api = Api::new();
    let objects = [object(A, Some(NEWER))];
    let bucket = api.dead_letters.clone();
    // The list is written, and the object is not.
    api.dead_letters
        .when_put("resolved/", move || bucket.fail_puts(ErrorKind::Other));
    let failed = import(&api, &objects).await;
    failed.problem(503, "unavailable");
    assert_eq!(stored(&api, A), None);
    let entry = api.get("/audit").await.json()["entries"][0].clone();
    assert_eq!(
        (&entry["action"], &entry["outcome"]),
        (&json!("dead-letters.import"), &json!("failed"))
    );
    api.dead_letters.mend_puts();
    let answer = import(&api, &objects).await.json();
    assert_eq!(
        (&answer["objects"], &answer["resolved"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(resolved(&api, A).unwrap().places, [1].into());
}

#[tokio::test]
async fn request_with_one_bad_object_writes_nothing() {
    let api = Api::new();
    let check = async |objects: &[String], member: Option<&str>, detail: &str| {
        let body = import(&api, objects).await.problem(400, "about:blank");
        assert_eq!(body["member"].as_str(), member, "{body}");
        let said = body["detail"].as_str().unwrap();
        assert!(said.contains(detail), "{detail}: {body}");
        assert!(api.dead_letters.keys("").is_empty(), "{detail}");
    };
    let good = || object(A, None);
    let bad = Some("objects[1]");
    let no_letter = good().replace("deadletterreason", "reason");
    check(&[object(B, None), no_letter], bad, "not a dead letter").await;
    for key in [
        "MALFORMED/2026/3/7/4/x",
        "resolved/x",
        "orders/b/2026/3/7/4/x.json",
    ] {
        check(&[good(), object(key, None)], bad, "the key").await;
    }
    let beyond = r#"{"v":1,"letters":[[0,2]]}"#;
    check(&[good(), object(B, Some(beyond))], bad, "what is resolved").await;
    check(&[good(), good()], bad, "the same object twice").await;
    let empty = format!("{{\"object\":\"{B}\",\"letters\":[]}}");
    check(&[good(), empty], bad, "without dead letters").await;
    check(&[], Some("objects"), "expected 1 to 100 objects").await;
    let many = vec![good(); DEAD_LETTER_IMPORT_OBJECTS_MAX + 1];
    check(&many, Some("objects"), "found 101").await;
    let check = async |objects: &[String], member: &str, detail: &str| {
        let body = import(&api, objects).await.problem(400, "bad-settings");
        assert_eq!(
            (&body["member"], &body["detail"]),
            (&json!(member), &json!(detail))
        );
        assert!(api.dead_letters.keys("").is_empty(), "{detail}");
    };
    let number = "expected an object, found a number";
    check(&[good(), "17".to_owned()], "objects[1]", number).await;
    let list = "expected an object, found a list";
    let listed = format!("[\"{B}\",[{LETTER}]]");
    check(&[good(), listed], "objects[1]", list).await;
    let entries = api.get("/audit").await.json();
    assert_eq!(entries["entries"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn body_may_be_as_large_as_an_object_and_no_larger() {
    let api = Api::new();
    // White space is no part of what is stored.
    let body = |bytes: usize| {
        let body = format!("{{\"objects\":[{}]}}", object(A, None));
        body + &" ".repeat(bytes - "{\"objects\":[]}".len() - object(A, None).len())
    };
    const { assert!(DEAD_LETTER_IMPORT_BYTES_MAX > MANAGE_REQUEST_BYTES_MAX) };
    let answer = import_body(&api, body(DEAD_LETTER_IMPORT_BYTES_MAX + 1)).await;
    answer.problem(413, "too-large");
    let answer = import_body(&api, body(DEAD_LETTER_IMPORT_BYTES_MAX)).await;
    assert_eq!(answer.status, 200);
    let text = [("content-type", "text/plain")];
    let answer = api.call("POST", "/dead-letters/import", &text, "{}").await;
    answer.problem(415, "about:blank");
}
