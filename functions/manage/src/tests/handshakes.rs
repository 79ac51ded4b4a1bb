use std::time::Duration;

use posthaste_core::model::SendFailure;
use posthaste_ports::{ErrorKind, WebhookRequest};
use posthaste_testkit::endpoint::answered;
use serde_json::{Value, json};

use super::{Api, billing};

const PATH: &str = "/topics/Orders/subscriptions/Billing";

/// `billing`, whose endpoint is asked so.
fn asked(validation: &str) -> Value {
    let mut settings = billing();
    settings["endpoint"]["validation"] = validation.into();
    settings
}

/// An API with a topic whose endpoint consents to everything, at this rate.
async fn consenting(rate: &'static str) -> Api {
    let api = Api::new();
    api.put("/topics/Orders", json!({})).await;
    let headers = [
        ("webhook-allowed-origin", "*"),
        ("webhook-allowed-rate", rate),
    ];
    api.endpoint.answer(move |_| answered(200, &headers, ""));
    api
}

/// An API with the topic, whose endpoint answers this to every handshake.
async fn silent(status: u16) -> Api {
    let api = Api::new();
    api.put("/topics/Orders", json!({})).await;
    api.endpoint.answer(move |_| answered(status, &[], ""));
    api
}

async fn act(api: &Api, action: &str) -> super::Answer {
    api.call("POST", &format!("{PATH}/{action}"), &[], "").await
}

/// The path of the address that the endpoint was given.
fn callback(request: &WebhookRequest) -> String {
    let header = request
        .headers
        .get("webhook-request-callback")
        .map(|url| url.to_str().unwrap().to_owned());
    let url = header.unwrap_or_else(|| {
        event(request)["data"]["validationUrl"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    url.strip_prefix("https://manage.example/base")
        .unwrap()
        .to_owned()
}

fn event(request: &WebhookRequest) -> Value {
    let events: Value = serde_json::from_slice(&request.body.concat()).unwrap();
    events[0].clone()
}

fn state(answer: &super::Answer) -> String {
    answer.json()["status"]["state"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Calls an address as an endpoint does: without the admin key.
async fn call(api: &Api, method: &str, path: &str, rate: Option<&str>) -> super::Answer {
    let mut request = http::Request::builder().method(method).uri(path);
    if let Some(rate) = rate {
        request = request.header("WebHook-Allowed-Rate", rate);
    }
    api.send(request.body(axum::body::Body::empty()).unwrap())
        .await
}

/// An endpoint that consents at once is active, and the rate that it allows is kept.
#[tokio::test]
async fn endpoint_that_consents_at_once_is_active_with_its_rate() {
    let api = consenting("120").await;
    let mut settings = asked("CloudEvents");
    settings["endpoint"]["maxRequestsPerSecond"] = 5.into();
    settings["endpoint"]["timeout"] = "PT3S".into();
    let answer = api.put(PATH, settings).await;
    assert_eq!(answer.status, 201);
    let status = json!({
        "state": "Active", "since": "2026-11-21T10:00:00.000Z",
        "consent": { "url": "https://billing.example.com/hooks", "validation": "CloudEvents",
            "at": "2026-11-21T10:00:00.000Z", "allowedRequestsPerMinute": 120 },
    });
    assert_eq!(answer.json()["status"], status);
    assert_eq!(answer.header("etag"), api.get(PATH).await.header("etag"));
    let [request] = &api.endpoint.take()[..] else {
        panic!("one request")
    };
    assert_eq!(
        (request.method.as_str(), request.url.as_str()),
        ("OPTIONS", "https://billing.example.com/hooks")
    );
    assert_eq!(
        request.headers["webhook-request-origin"],
        "posthaste.example"
    );
    assert_eq!(request.headers["webhook-request-rate"], "300");
    assert_eq!(request.timeout, Duration::from_secs(3));
    assert!(callback(request).starts_with("/validate/Orders/Billing/"));
}

#[tokio::test]
async fn without_validation_nobody_is_asked() {
    let api = consenting("*").await;
    assert_eq!(state(&api.put(PATH, billing()).await), "Active");
    assert_eq!(api.endpoint.take().len(), 0);
}

/// A write that changes nothing the endpoint consented to does not ask it again.
#[tokio::test]
async fn writes_that_keep_the_endpoint_do_not_ask_again() {
    let api = consenting("*").await;
    let first = api.put(PATH, asked("CloudEvents")).await;
    api.endpoint.take();
    let mut filtered = asked("CloudEvents");
    filtered["filter"] = json!({ "subjectBeginsWith": "/eu" });
    let again = api.put(PATH, filtered).await;
    assert_eq!(
        (again.json()["status"].clone(), api.endpoint.take().len()),
        (first.json()["status"].clone(), 0)
    );
    let mut moved = asked("CloudEvents");
    moved["endpoint"]["url"] = "https://other.example.com/".into();
    assert_eq!(state(&api.put(PATH, moved).await), "Active");
    assert_eq!(api.endpoint.take().len(), 1);
}

/// An endpoint that calls back later is active from then on, with the rate that it names.
#[tokio::test]
async fn late_callback_activates_with_the_rate_it_names() {
    for (method, header, query, kept) in [
        ("GET", None, "", Value::Null),
        ("GET", None, "?WebHook-Allowed-Rate=60", json!(60)),
        ("POST", Some("30"), "", json!(30)),
        ("POST", Some("*"), "", Value::Null),
    ] {
        let api = silent(405).await;
        let answer = api.put(PATH, asked("CloudEvents")).await;
        assert_eq!((answer.status, state(&answer)), (201, "Pending".to_owned()));
        let reason =
            "the endpoint has yet to consent: it answered 405 without WebHook-Allowed-Origin";
        assert_eq!(answer.json()["status"]["reason"], reason);
        let handshake = json!({ "expiresAt": "2026-11-21T10:10:00.000Z", "askedAt": "2026-11-21T10:00:00.000Z" });
        assert_eq!(answer.json()["status"]["handshake"], handshake);
        let path = callback(&api.endpoint.take()[0]);
        api.clock.advance(Duration::from_mins(9));
        assert_eq!(
            call(&api, method, &format!("{path}{query}"), header)
                .await
                .status,
            200
        );
        let status = api.get(PATH).await.json()["status"].clone();
        assert_eq!(
            (&status["state"], &status["since"]),
            (&json!("Active"), &json!("2026-11-21T10:09:00.000Z"))
        );
        assert_eq!(
            status["consent"]
                .get("allowedRequestsPerMinute")
                .cloned()
                .unwrap_or_default(),
            kept
        );
        // The code has had its use.
        call(&api, method, &path, None)
            .await
            .problem(404, "about:blank");
    }
}

/// The endpoint did not consent in time. Nothing was written since.
#[tokio::test]
async fn list_by_state_selects_what_it_shows() {
    let api = silent(405).await;
    api.put(PATH, asked("CloudEvents")).await;
    let states = async |state: &str| -> Vec<Value> {
        let path = format!("/topics/orders/subscriptions?state={state}");
        let page = api.get(&path).await.json();
        let all = page["subscriptions"].as_array().unwrap().iter();
        all.map(|it| it["status"]["state"].clone()).collect()
    };
    assert_eq!(states("Pending").await, ["Pending"]);
    api.clock.advance(Duration::from_mins(10));
    assert_eq!(states("Pending").await, [] as [Value; 0]);
    assert_eq!(states("Failed").await, ["Failed"]);
}

#[tokio::test]
async fn whoever_guesses_at_an_address_learns_nothing() {
    let api = silent(200).await;
    api.put(PATH, asked("CloudEvents")).await;
    let path = callback(&api.endpoint.take()[0]);
    let known = call(&api, "GET", &path.replace("/Billing/", "/Billing/x"), None)
        .await
        .problem(404, "about:blank");
    for other in [
        path.replace("/Orders/", "/nowhere/"),
        path.replace("/Billing/", "/nobody/"),
    ] {
        assert_eq!(
            call(&api, "POST", &other, None)
                .await
                .problem(404, "about:blank"),
            known
        );
    }
    assert_eq!(call(&api, "HEAD", &path, None).await.status, 405);
    call(&api, "GET", &path, Some("0"))
        .await
        .problem(400, "about:blank");
    assert_eq!(state(&api.get(PATH).await), "Pending");
    assert_eq!(
        call(
            &api,
            "GET",
            &path.replace("/Orders/Billing/", "/ORDERS/billing/"),
            None
        )
        .await
        .status,
        200
    );
}

/// The code is a key: whoever guesses at it is counted, by either way to call.
#[tokio::test]
async fn wrong_codes_are_counted_with_the_wrong_keys() {
    let api = silent(200).await;
    api.put(PATH, asked("CloudEvents")).await;
    for method in ["GET", "POST"] {
        call(&api, method, "/validate/Orders/Billing/wrong", None)
            .await
            .problem(404, "about:blank");
    }
    api.clock.advance(Duration::from_mins(1));
    // The first one had a line of its own, and this is the next after the second.
    assert_eq!(api.manage.wrong_keys.count_wrong_key(&api.clock), Some(2));
}

/// An endpoint that has not called back after ten minutes has failed.
#[tokio::test]
async fn consent_missing_after_ten_minutes_has_failed() {
    let api = silent(200).await;
    api.put(PATH, asked("CloudEvents")).await;
    let path = callback(&api.endpoint.take()[0]);
    api.clock.advance(Duration::from_mins(10));
    let status = api.get(PATH).await.json()["status"].clone();
    assert_eq!(
        (&status["state"], &status["since"]),
        (&json!("Failed"), &json!("2026-11-21T10:10:00.000Z"))
    );
    call(&api, "GET", &path, None)
        .await
        .problem(404, "about:blank");
    assert_eq!(state(&api.get(PATH).await), "Failed");
}

/// An endpoint that cannot be asked has failed, and the subscription is written anyway.
#[tokio::test]
async fn unreachable_endpoint_is_written_as_failed() {
    let api = Api::new();
    api.put("/topics/Orders", json!({})).await;
    api.endpoint.answer(|_| {
        Err(SendFailure::Resolution {
            does_not_exist: true,
        })
    });
    let answer = api.put(PATH, asked("CloudEvents")).await;
    assert_eq!((answer.status, state(&answer)), (201, "Failed".to_owned()));
    let reason = "the endpoint could not be asked: the host name does not exist";
    assert_eq!(answer.json()["status"]["reason"], reason);
}

#[tokio::test]
async fn event_grid_s_event_is_answered_with_its_code() {
    let api = Api::new();
    api.put("/topics/Orders", json!({})).await;
    api.endpoint.answer(|request| {
        let code = event(request)["data"]["validationCode"].clone();
        answered(200, &[], &json!({ "validationResponse": code }).to_string())
    });
    assert_eq!(state(&api.put(PATH, asked("EventGrid")).await), "Active");
    let [request] = &api.endpoint.take()[..] else {
        panic!("one request")
    };
    assert_eq!(
        (request.method.as_str(), &request.headers["aeg-event-type"]),
        ("POST", &"SubscriptionValidation".parse().unwrap())
    );
    assert_eq!(
        event(request)["eventType"],
        "Microsoft.EventGrid.SubscriptionValidationEvent"
    );
    assert!(request.headers.contains_key("webhook-signature"));
}

#[tokio::test]
async fn event_grid_s_validation_url_may_be_opened_instead() {
    let api = silent(200).await;
    assert_eq!(state(&api.put(PATH, asked("EventGrid")).await), "Pending");
    let path = callback(&api.endpoint.take()[0]);
    assert_eq!(call(&api, "GET", &path, None).await.status, 200);
    assert_eq!(state(&api.get(PATH).await), "Active");
    let api = silent(202).await;
    assert_eq!(state(&api.put(PATH, asked("EventGrid")).await), "Failed");
}

/// The record exists before the endpoint is asked, so that the endpoint may call back at once.
#[tokio::test]
async fn record_is_written_before_the_endpoint_is_asked() {
    let api = Api::new();
    api.put("/topics/Orders", json!({})).await;
    let state_of_store = api.state.clone();
    api.endpoint.answer(move |_| {
        let record =
            String::from_utf8(state_of_store.read("topics/orders.json").unwrap().to_vec()).unwrap();
        let headers = if record.contains(r#""state":"Pending""#) {
            [("webhook-allowed-origin", "*")]
        } else {
            [("allow", "POST")]
        };
        answered(200, &headers, "")
    });
    assert_eq!(state(&api.put(PATH, asked("CloudEvents")).await), "Active");
}

/// All endpoints of a topic are asked, and each of them answers for itself.
#[tokio::test]
async fn endpoints_of_a_topic_are_asked_and_answer_for_themselves() {
    let api = Api::new();
    api.endpoint.answer(|request| match request.url.as_str() {
        "https://yes.example/" => {
            answered(200, &[("webhook-allowed-origin", "posthaste.example")], "")
        }
        _ => Err(SendFailure::TimedOut),
    });
    let at = |url: &str| json!({ "endpoint": { "url": url, "validation": "CloudEvents" } });
    let subscriptions = json!({ "yes": at("https://yes.example/"), "no": at("https://no.example/"), "plain": billing() });
    let answer = api
        .put("/topics/Orders", json!({ "subscriptions": subscriptions }))
        .await;
    let state = |name: &str| answer.json()["subscriptions"][name]["status"]["state"].clone();
    assert_eq!(
        ["yes", "no", "plain"].map(state),
        ["Active", "Failed", "Active"]
    );
    assert_eq!(api.endpoint.take().len(), 2);
}

/// Pausing, resuming, disabling and enabling lead from state to state.
#[tokio::test]
async fn actions_lead_from_state_to_state() {
    let api = Api::with_billing().await;
    for (action, expected) in [
        ("pause", "Paused"),
        ("resume", "Active"),
        ("disable", "Disabled"),
        ("enable", "Active"),
    ] {
        api.clock.advance(Duration::from_mins(1));
        let answer = act(&api, action).await;
        assert_eq!(
            (answer.status, state(&answer)),
            (200, expected.to_owned()),
            "{action}"
        );
        assert_eq!(answer.header("etag"), api.get(PATH).await.header("etag"));
    }
    let wrong = act(&api, "resume").await.problem(409, "wrong-state");
    assert_eq!(
        wrong["detail"],
        "it is Active, and only a Paused one can be resumed"
    );
    let wrong = act(&api, "validate").await.problem(409, "wrong-state");
    assert_eq!(
        wrong["detail"],
        "its endpoint.validation is none, so there is nothing to validate"
    );
    act(&api, "paint").await.problem(400, "about:blank");
    api.call("POST", "/topics/Orders/subscriptions/other/pause", &[], "")
        .await
        .problem(404, "unknown-subscription");
}

#[tokio::test]
async fn a_paused_subscription_stays_paused_when_it_is_written() {
    let api = Api::with_billing().await;
    act(&api, "pause").await;
    assert_eq!(state(&api.put(PATH, billing()).await), "Paused");
}

/// A failed endpoint is asked again by validating, enabling or writing its subscription.
#[tokio::test]
async fn failed_endpoint_is_asked_again_by_validate_enable_or_write() {
    let api = consenting("*").await;
    for again in ["validate", "enable", "write"] {
        api.endpoint.answer(|_| Err(SendFailure::Socket));
        let mut elsewhere = asked("CloudEvents");
        elsewhere["endpoint"]["url"] = format!("https://{again}.example.com/").into();
        assert_eq!(state(&api.put(PATH, elsewhere.clone()).await), "Failed");
        api.endpoint
            .answer(|_| answered(204, &[("webhook-allowed-origin", "*")], ""));
        let answer = if again == "write" {
            api.put(PATH, elsewhere).await
        } else {
            act(&api, again).await
        };
        assert_eq!(state(&answer), "Active", "{again}");
    }
}

#[tokio::test]
async fn an_active_one_that_does_not_consent_again_has_failed() {
    let api = consenting("*").await;
    api.put(PATH, asked("CloudEvents")).await;
    api.endpoint
        .answer(|_| answered(200, &[("webhook-allowed-origin", "somebody.else")], ""));
    let answer = act(&api, "validate").await;
    assert_eq!(state(&answer), "Failed");
    assert_eq!(answer.json()["status"].get("consent"), None);
}

#[tokio::test]
async fn views_never_show_the_handshake_code() {
    let api = silent(200).await;
    let written = api.put(PATH, asked("CloudEvents")).await;
    let path = callback(&api.endpoint.take()[0]);
    let code = path.rsplit('/').next().unwrap();
    assert!(code.len() >= 43, "{code}");
    for answer in [
        written,
        api.get(PATH).await,
        api.get("/topics/orders").await,
        api.get("/topics/orders/subscriptions").await,
    ] {
        assert!(!String::from_utf8_lossy(&answer.body).contains(code));
    }
}

#[tokio::test]
async fn endpoints_that_hang_do_not_keep_a_request_for_ever() {
    let api = silent(200).await;
    api.endpoint.hang();
    api.clock.shorten_nights_to(Duration::from_secs(20));
    let answer = api.put(PATH, asked("CloudEvents")).await;
    assert_eq!((answer.status, state(&answer)), (201, "Pending".to_owned()));
}

/// Consent that the store could not keep is asked for again by the next write or action.
#[tokio::test]
async fn consent_the_store_could_not_keep_is_asked_for_again() {
    let api = silent(200).await;
    let store = api.state.clone();
    api.endpoint.answer(move |_| {
        store.fail_puts(ErrorKind::Other);
        answered(200, &[("webhook-allowed-origin", "*")], "")
    });
    let answer = api.put(PATH, asked("CloudEvents")).await;
    assert_eq!((answer.status, state(&answer)), (201, "Pending".to_owned()));
    // Only this answer ever shows it.
    let secret = answer.json()["signing"]["secrets"][0]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    api.state.mend_puts();
    api.endpoint
        .answer(|_| answered(200, &[("webhook-allowed-origin", "*")], ""));
    assert_eq!(state(&api.put(PATH, asked("CloudEvents")).await), "Active");
    // An action shows no secret, and says that it has failed.
    let store = api.state.clone();
    api.endpoint.answer(move |_| {
        store.fail_puts(ErrorKind::Other);
        answered(200, &[("webhook-allowed-origin", "*")], "")
    });
    act(&api, "validate").await.problem(503, "unavailable");
}

/// The next write asks an endpoint that could not be asked in time, with the same code.
#[tokio::test]
async fn endpoint_not_asked_in_time_is_asked_next_with_the_same_code() {
    let api = consenting("*").await;
    api.endpoint.hang();
    api.clock.shorten_nights_to(Duration::from_secs(20));
    assert_eq!(state(&api.put(PATH, asked("CloudEvents")).await), "Pending");
    let first = callback(&api.endpoint.take()[0]);
    api.endpoint.go_on();
    assert_eq!(state(&api.put(PATH, asked("CloudEvents")).await), "Active");
    assert_eq!(callback(&api.endpoint.take()[0]), first);
}

/// A write that changes nothing leaves the address that was given out valid.
#[tokio::test]
async fn unchanged_write_keeps_the_callback_address_valid() {
    let api = silent(405).await;
    api.put(PATH, asked("CloudEvents")).await;
    let path = callback(&api.endpoint.take()[0]);
    api.clock.advance(Duration::from_mins(5));
    assert_eq!(state(&api.put(PATH, asked("CloudEvents")).await), "Pending");
    assert_eq!(api.endpoint.take().len(), 0);
    assert_eq!(call(&api, "GET", &path, None).await.status, 200);
    assert_eq!(state(&api.get(PATH).await), "Active");
}

#[tokio::test]
async fn a_disabled_subscription_stays_so_until_its_endpoint_changes() {
    let api = Api::with_billing().await;
    act(&api, "disable").await;
    assert_eq!(state(&api.put(PATH, billing()).await), "Disabled");
    let topic = api
        .put(
            "/topics/orders",
            json!({ "subscriptions": { "Billing": billing() } }),
        )
        .await;
    assert_eq!(
        topic.json()["subscriptions"]["Billing"]["status"]["state"],
        "Disabled"
    );
    let moved = json!({ "endpoint": { "url": "https://other.example.com/" } });
    assert_eq!(state(&api.put(PATH, moved).await), "Active");
}

#[tokio::test]
async fn an_active_one_whose_endpoint_gives_no_answer_stays_active() {
    let api = consenting("*").await;
    let before = api.put(PATH, asked("CloudEvents")).await;
    api.endpoint.answer(|_| Err(SendFailure::Exhausted));
    let answer = act(&api, "validate").await;
    assert_eq!(state(&answer), "Active");
    let before = before.json();
    let after = answer.json();
    assert_eq!(after["status"]["consent"], before["status"]["consent"]);
    let reason = after["status"]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("it stays as it was: the endpoint could not be asked: "),
        "{reason}"
    );
}

/// Endpoints wait for their turn: one that is not to be asked any more by then is not asked.
#[tokio::test]
async fn endpoint_that_changed_while_it_waited_is_not_asked() {
    for change in ["delete", "another handshake", "topic"] {
        let api = Api::new();
        let state = api.state.clone();
        let clock = api.clock.clone();
        api.endpoint.answer(move |_| {
            clock.advance(Duration::from_secs(2));
            let text = state.read("topics/orders.json").unwrap();
            let mut record: Value = serde_json::from_slice(&text).unwrap();
            let subscriptions = &mut record["settings"]["subscriptions"];
            match change {
                "delete" => drop(subscriptions.as_object_mut().unwrap().remove("b")),
                "topic" => *subscriptions = json!({}),
                _ => subscriptions["b"]["status"]["handshake"]["code"] = "another".into(),
            }
            state.write("topics/orders.json", record.to_string());
            answered(200, &[("webhook-allowed-origin", "*")], "")
        });
        let at = |url: &str| json!({ "endpoint": { "url": url, "validation": "CloudEvents" } });
        let both = json!({ "a": at("https://a.example/"), "b": at("https://b.example/") });
        api.put("/topics/Orders", json!({ "subscriptions": both }))
            .await;
        let asked = api.endpoint.take();
        let asked: Vec<_> = asked.iter().map(|it| it.url.as_str()).collect();
        assert_eq!(asked, ["https://a.example/"], "{change}");
    }
}
