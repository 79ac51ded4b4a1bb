//! Guesses at keys: they leave a trace, take their time, and lock nobody out.

use std::thread;

use posthaste_tests::api::{Api, CLOUD_EVENT};
use posthaste_tests::events::cloud_event;
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// More than may wait for their answers at one door.
const AT_ONCE: usize = 24;

/// The doors, with the status of a wrong key.
const DOORS: [(&str, u16); 4] = [
    ("manage", 401),
    ("publish", 401),
    ("callback", 404),
    ("posted callback", 404),
];

fn guess(api: &Api, door: &str) -> u16 {
    let wrong = [("authorization", "Bearer a-key-of-nobody-at-all")];
    let (method, path, headers) = match door {
        "publish" => ("POST", "/topics/orders/events", &wrong[..]),
        "callback" => ("GET", "/validate/orders/billing/wrong", &[][..]),
        "posted callback" => ("POST", "/validate/nowhere/none/wrong", &[][..]),
        _ => ("GET", "/topics/orders", &wrong[..]),
    };
    let answer = api.send(method, path, headers, b"");
    answer.expect("the server answers").status
}

fn lines(server: &Server, message: &str) -> Vec<Value> {
    let parsed = server
        .log()
        .into_iter()
        .filter_map(|line| serde_json::from_str(&line).ok());
    parsed
        .filter(|line: &Value| line["message"] == message)
        .collect()
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).expect("the text before it");
    rest.split_once(after).expect("the text after it").0
}

/// The console counts each wrong key and speaks of them once a minute, as the other doors do.
#[test]
fn guesses_at_the_console_are_counted_and_logged_seldom() {
    const GUESSES: usize = 20;
    let home = Home::new();
    let server = home.serve();
    let page = server.api().send("GET", "/console/sign-in", &[], b"");
    let page = page.expect("the server answers").expect(200);
    let cookie = page.header("set-cookie").unwrap_or_default();
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let html = String::from_utf8_lossy(&page.body).into_owned();
    let token = between(&html, "name=\"form\" value=\"", "\"").to_owned();
    let guesses: Vec<_> = (0..GUESSES)
        .map(|_| {
            let api = server.api().clone();
            let cookie = cookie.clone();
            let token = token.clone();
            thread::spawn(move || {
                let headers = [
                    ("cookie", cookie.as_str()),
                    ("content-type", "application/x-www-form-urlencoded"),
                ];
                let form = format!("form={token}&key=not-the-admin-key-at-all");
                let sent = api.send("POST", "/console/sign-in", &headers, form.as_bytes());
                sent.expect("the server answers").status
            })
        })
        .collect();
    for guess in guesses {
        assert!((400..500).contains(&guess.join().unwrap()));
    }
    let counted = server
        .api()
        .metric("posthaste_console_sign_ins_failed_total");
    assert_eq!(counted.to_string(), GUESSES.to_string());
    let told = wait_until("a line", || {
        Some(lines(&server, "sign-in to the console with a wrong key")).filter(|it| !it.is_empty())
    });
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn guesses_are_counted_logged_and_slowed_at_every_door() {
    let home = Home::new();
    let server = home.serve();
    let topic = server.api().create_topic("orders", &json!({}));
    for (door, refused) in DOORS {
        let guesses: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let api = server.api().clone();
                thread::spawn(move || guess(&api, door))
            })
            .collect();
        // The right keys wait for nobody.
        topic.publish(&cloud_event(door));
        server.api().show("/topics/orders");
        let answers: Vec<_> = guesses.into_iter().map(|it| it.join().unwrap()).collect();
        let of = |status| answers.iter().filter(|it| **it == status).count();
        assert_eq!(of(refused) + of(429), AT_ONCE, "{door}: {answers:?}");
        // Eight wait for a second, and the others come meanwhile.
        assert!(of(refused) >= 8 && of(429) >= 1, "{door}: {answers:?}");
    }
    let counted = server.api().metric("posthaste_wrong_keys_total");
    assert_eq!(counted.to_string(), (DOORS.len() * AT_ONCE).to_string());
    let told = wait_until("a line of each door", || {
        Some(lines(&server, "wrong keys were shown")).filter(|it| it.len() == 2)
    });
    let functions: Vec<_> = told.iter().map(|line| line["function"].clone()).collect();
    assert_eq!(functions, ["manage", "publish"]);
}

/// A client without a right key learns nothing of topics and subscriptions.
#[test]
fn existing_names_are_answered_like_unknown_ones() {
    let home = Home::new();
    let server = home.serve();
    let settings = json!({ "subscriptions": { "billing": {
        "endpoint": { "url": "http://127.0.0.1:9/" },
    } } });
    server.api().create_topic("orders", &settings);
    let event = cloud_event("1").to_string();
    let kind = ("content-type", CLOUD_EVENT);
    let ask = |method, path: &str, headers: &[(&str, &str)]| {
        let answer = server.api().send(method, path, headers, event.as_bytes());
        let answer = answer.expect("the server answers");
        let mut names: Vec<_> = answer.headers.keys().map(ToString::to_string).collect();
        names.sort();
        (answer.status, names, answer.body)
    };
    let wrong = ("authorization", "Bearer wrong");
    for headers in [
        &[kind][..],
        &[kind, ("aeg-sas-key", "wrong")],
        &[kind, wrong],
    ] {
        let there = ask("POST", "/topics/orders/events", headers);
        assert_eq!(there.0, 401);
        for path in [
            "/topics/nowhere/events",
            "/topics/a%2Fb/events",
            "/topics/nowhere/api/events",
        ] {
            assert_eq!(ask("POST", path, headers), there, "{path}");
        }
    }
    for (there, missing) in [
        ("/topics/orders", "/topics/nowhere"),
        (
            "/topics/orders/subscriptions/billing",
            "/topics/orders/subscriptions/none",
        ),
        (
            "/topics/orders/subscriptions/billing/dead-letters",
            "/topics/nowhere/subscriptions/billing/dead-letters",
        ),
        ("/topics/orders/events/1", "/topics/nowhere/events/1"),
    ] {
        for headers in [&[][..], &[wrong]] {
            let answer = ask("GET", there, headers);
            assert_eq!(answer.0, 401);
            assert_eq!(ask("GET", missing, headers), answer, "{missing}");
        }
    }
    for code in [
        "orders/billing/wrong",
        "orders/none/wrong",
        "nowhere/billing/wrong",
    ] {
        assert_eq!(ask("GET", &format!("/validate/{code}"), &[]).0, 404);
    }
}
