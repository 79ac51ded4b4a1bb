//! The trace of an event: its acceptance, each wait and each request as spans of one tree, whichever
//! function makes them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use http::Request;
use posthaste_core::trace::{SampleRatio, SpanKind, SpanValue, TraceContext, TraceSpan};
use posthaste_ports::{Clock, SpanSink};
use posthaste_services::EventTraces;
use posthaste_simulation::{Answer, Worker, World};
use posthaste_testkit::faulty::FaultPlan;
use serde_json::{Value, json};

use super::pending::{topic, traced_publish};

/// The span of a producer.
const PRODUCER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The spans that were taken.
#[derive(Debug, Default)]
struct Taken(Mutex<Vec<TraceSpan>>);

impl SpanSink for Taken {
    fn take_span(&self, span: TraceSpan) {
        self.0.lock().unwrap().push(span);
    }
}

impl Taken {
    fn all(&self) -> Vec<TraceSpan> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

struct Traced {
    world: World,
    taken: Arc<Taken>,
    traces: EventTraces,
    worker: Worker,
}

impl Traced {
    /// A world whose topic has these subscriptions.
    async fn with(subscriptions: &[&str], ratio: &str, tells_endpoints: bool) -> Self {
        let world = World::new();
        topic(&world, subscriptions).await;
        let taken = Arc::<Taken>::default();
        let ratio: SampleRatio = ratio.parse().unwrap();
        let traces =
            EventTraces::with_sink(taken.clone(), ratio).telling_endpoints(tells_endpoints);
        let worker = world.another_worker(1).with_traces(traces.clone());
        Self {
            world,
            taken,
            traces,
            worker,
        }
    }

    /// Publishes an event with these members, in a request with this header `traceparent`.
    async fn publish(&self, members: Value, header: Option<&str>) {
        let mut event = json!({ "specversion": "1.0", "id": "e1", "source": "/s", "type": "t" });
        let members = members.as_object().unwrap().clone();
        event.as_object_mut().unwrap().extend(members);
        self.publish_body(&event, "application/cloudevents+json", header)
            .await;
    }

    async fn publish_body(&self, body: &Value, content_type: &str, header: Option<&str>) {
        let api = self.world.api();
        let (_, keys) = api.ask("GET", "/topics/orders/keys", &Value::Null).await;
        let mut request = Request::post("/")
            .header("content-type", content_type)
            .header("aeg-sas-key", keys["key1"].as_str().unwrap());
        if let Some(header) = header {
            request = request.header("traceparent", header);
        }
        let request = request.body(Body::from(body.to_string())).unwrap();
        let publish = traced_publish(&self.world, &FaultPlan::none(), self.traces.clone());
        publish.publish("orders", request).await.unwrap();
    }

    /// The headers `traceparent` of the requests so far.
    fn outward(&self) -> Vec<Option<String>> {
        let requests = self.world.endpoint.take();
        let headers = requests
            .iter()
            .map(|request| request.headers.get("traceparent"));
        headers
            .map(|value| Some(value?.to_str().unwrap().to_owned()))
            .collect()
    }
}

fn kinds(spans: &[TraceSpan]) -> Vec<&'static str> {
    spans.iter().map(|span| span.kind.as_str()).collect()
}

fn value(span: &TraceSpan, name: &str) -> Option<SpanValue> {
    let mut values = span.values.iter();
    Some(values.find(|(known, _)| *known == name)?.1.clone())
}

#[tokio::test]
async fn spans_of_an_event_are_one_tree_over_all_attempts() {
    let traced = Traced::with(&["a"], "0", false).await;
    traced
        .publish(json!({ "traceparent": PRODUCER }), None)
        .await;
    traced
        .world
        .endpoint
        .answer([Answer::Status(503), Answer::Status(204)]);
    traced.worker.deliver().await;
    traced.world.clock.advance(Duration::from_mins(1));
    traced.worker.deliver().await;
    let spans = traced.taken.all();
    assert_eq!(
        kinds(&spans),
        ["publish", "wait", "attempt", "wait", "attempt"]
    );
    let producer = TraceContext::parse(PRODUCER).unwrap();
    assert_eq!(spans[0].place.parent, Some(producer.span_id));
    for span in &spans {
        assert_eq!(span.place.context.trace_id, producer.trace_id);
    }
    for span in &spans[1..] {
        assert_eq!(span.place.parent, Some(spans[0].place.context.span_id));
        assert_eq!(span.target, "orders/a");
    }
    let [_, _, first, wait, second] = &spans[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(first.error.as_deref(), Some("the endpoint answered 503"));
    assert_eq!(value(first, "http.response.status_code"), Some(503.into()));
    assert_eq!(value(first, "posthaste.verdict"), Some("retry".into()));
    assert_eq!(value(first, "server.address"), Some("a.example.com".into()));
    assert_eq!(
        (second.error.as_deref(), value(second, "posthaste.attempt")),
        (None, Some(2.into()))
    );
    assert_eq!(
        (wait.began, wait.took),
        (first.began, Duration::from_mins(1))
    );
    assert_eq!(second.began, traced.world.clock.now());
}

/// The events share a request, and each span says so by its webhook id.
#[tokio::test]
async fn each_event_of_a_batch_has_its_trace() {
    let traced = Traced::with(&[], "1", false).await;
    let settings = json!({ "subscriptions": { "a": {
        "endpoint": { "url": "https://a.example.com/" },
        "batching": { "maxEventsPerBatch": 10 },
    } } });
    let api = traced.world.api();
    let (status, answer) = api.ask("PUT", "/topics/orders", &settings).await;
    assert_eq!(status, 200, "{answer}");
    let event = |id| json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t" });
    traced
        .publish_body(
            &json!([event("e1"), event("e2")]),
            "application/cloudevents-batch+json",
            None,
        )
        .await;
    traced.worker.deliver().await;
    assert_eq!(traced.outward().len(), 1);
    let spans = traced.taken.all();
    let mut ids: Vec<_> = spans
        .iter()
        .map(|span| span.place.context.trace_id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2);
    let of_attempts = spans.iter().filter(|span| span.kind == SpanKind::Attempt);
    let attempts: Vec<_> = of_attempts.collect();
    assert_eq!(attempts.len(), 2);
    assert_ne!(attempts[0].place.parent, attempts[1].place.parent);
    let shared = attempts
        .iter()
        .map(|span| value(span, "posthaste.webhook_id"));
    let shared: Vec<_> = shared.collect();
    assert!(shared[0].is_some() && shared[0] == shared[1]);
}

#[tokio::test]
async fn unsampled_producer_context_has_no_spans() {
    let traced = Traced::with(&["a"], "1", true).await;
    let unsampled = PRODUCER.replace("-01", "-00");
    traced
        .publish(json!({ "traceparent": unsampled }), None)
        .await;
    traced.worker.deliver().await;
    assert!(traced.taken.all().is_empty());
    assert_eq!(traced.outward(), [Some(unsampled)]);
}

#[tokio::test]
async fn event_without_a_context_is_linked_to_its_publish_request() {
    let traced = Traced::with(&["a"], "1", false).await;
    traced.publish(json!({}), Some(PRODUCER)).await;
    traced.worker.deliver().await;
    let spans = traced.taken.all();
    assert_eq!(spans[0].link, TraceContext::parse(PRODUCER));
    assert_eq!(spans[0].place.parent, None);
    assert_eq!(traced.outward(), [None]);
}

#[tokio::test]
async fn endpoints_are_told_their_span_where_that_is_asked_for() {
    let traced = Traced::with(&["a"], "0", true).await;
    traced
        .publish(json!({ "traceparent": PRODUCER }), None)
        .await;
    traced.worker.deliver().await;
    let spans = traced.taken.all();
    let attempt = spans
        .iter()
        .find(|span| span.kind == SpanKind::Attempt)
        .unwrap();
    assert_eq!(traced.outward(), [Some(attempt.place.context.to_string())]);
}

#[tokio::test]
async fn endpoints_get_the_context_of_the_event_otherwise() {
    let traced = Traced::with(&["a"], "0", false).await;
    traced
        .publish(json!({ "traceparent": PRODUCER }), None)
        .await;
    traced.worker.deliver().await;
    assert_eq!(traced.outward(), [Some(PRODUCER.to_owned())]);
}
