use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest,
};
use opentelemetry_proto::tonic::metrics::v1::AggregationTemporality;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use parking_lot::Mutex;
use posthaste_ports::SpanSink;

use super::*;
use crate::metric::{MetricDistribution, PointValue};
use crate::span_queue::tests::span;
use posthaste_core::trace::collector::{parse_headers, parse_resource};

const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A collector that gives scripted responses, and then 200.
#[derive(Debug, Default)]
struct ScriptedCollector {
    answers: Mutex<VecDeque<Result<CollectorResponse, &'static str>>>,
    requests: Mutex<Vec<CollectorRequest>>,
}

impl Collector for Arc<ScriptedCollector> {
    async fn post_blocking(
        &self,
        request: CollectorRequest,
    ) -> Result<CollectorResponse, UnreachableError> {
        self.requests.lock().push(request);
        let answer = self.answers.lock().pop_front();
        let body = Bytes::new();
        answer
            .unwrap_or(Ok(CollectorResponse { status: 200, body }))
            .map_err(Into::into)
    }
}

struct World {
    collector: Arc<ScriptedCollector>,
    spans: Arc<SpanQueue>,
    exporter: OtlpExporter<Arc<ScriptedCollector>>,
}

fn world() -> World {
    let collector = Arc::<ScriptedCollector>::default();
    let spans = Arc::<SpanQueue>::default();
    let settings = CollectorSettings {
        endpoint: "http://127.0.0.1:4318/otlp/".parse().unwrap(),
        headers: parse_headers("x-key=secret").unwrap(),
        resource: parse_resource("service.name=mine,region=here").unwrap(),
    };
    let exporter = OtlpExporter::new(collector.clone(), settings, "posthaste", spans.clone());
    World {
        collector,
        spans,
        exporter,
    }
}

impl World {
    fn answers(&self, status: u16) {
        let body = Bytes::new();
        let answer = Ok(CollectorResponse { status, body });
        self.collector.answers.lock().push_back(answer);
    }

    /// The names of the spans in each request so far.
    fn sent_events(&self) -> Vec<Vec<String>> {
        let requests = self.collector.requests.lock();
        let events = requests.iter().map(|request| {
            let sent = ExportTraceServiceRequest::decode(&*request.body).unwrap();
            let spans = &sent.resource_spans[0].scope_spans[0].spans;
            let ids = spans
                .iter()
                .map(|span| span.attributes[0].value.clone().unwrap());
            ids.map(|id| format!("{:?}", id.value.unwrap())).collect()
        });
        events.collect()
    }
}

#[tokio::test]
async fn a_request_says_who_sends_it() {
    let world = world();
    world.spans.take_span(span(1));
    world.exporter.send_spans(9).await;
    let requests = world.collector.requests.lock();
    let [request] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(request.url.as_str(), "http://127.0.0.1:4318/otlp/v1/traces");
    assert_eq!(request.headers["content-type"], "application/x-protobuf");
    assert_eq!(request.headers["x-key"], "secret");
    let sent = ExportTraceServiceRequest::decode(&*request.body).unwrap();
    let resource = sent.resource_spans[0].resource.as_ref().unwrap();
    let names = resource.attributes.iter().map(|it| &*it.key);
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["service.version", "service.name", "region"]
    );
    let sent = &sent.resource_spans[0].scope_spans[0].spans[0];
    assert_eq!(
        (&*sent.name, sent.parent_span_id.len()),
        ("publish orders", 0)
    );
    let times = (sent.start_time_unix_nano, sent.end_time_unix_nano);
    assert_eq!(
        times,
        (1_700_000_000_000_000_000, 1_700_000_000_001_500_000)
    );
}

#[tokio::test]
async fn spans_are_sent_until_none_waits() {
    let world = world();
    (0..SPANS_PER_REQUEST_MAX + 2).for_each(|number| world.spans.take_span(span(number)));
    world.exporter.send_spans(9).await;
    let counts: Vec<_> = world.sent_events().iter().map(Vec::len).collect();
    assert_eq!(counts, [SPANS_PER_REQUEST_MAX, 2]);
}

#[tokio::test]
async fn full_requests_go_at_once_unless_the_collector_takes_none() {
    let world = world();
    let take = |count| (0..count).for_each(|number| world.spans.take_span(span(number)));
    let sent = || -> Vec<_> { world.sent_events().iter().map(Vec::len).collect() };
    let mut sending = pin!(world.exporter.send_full_requests());
    let mut go_on = || {
        let mut context = Context::from_waker(Waker::noop());
        assert!(sending.as_mut().poll(&mut context).is_pending());
    };
    let full = SPANS_PER_REQUEST_MAX;
    take(full - 1);
    go_on();
    assert_eq!(sent(), [0; 0]);
    take(full + 2);
    go_on();
    assert_eq!(sent(), [full, full], "one waits for more");
    world.answers(503);
    take(full - 1);
    go_on();
    take(full);
    go_on();
    assert_eq!(sent(), [full; 3], "the third was not taken");
    // As the schedule does, until the collector takes them again.
    world.exporter.send_spans(1).await;
    take(full - 1);
    go_on();
    assert_eq!(sent(), [full; 4]);
    take(1);
    go_on();
    assert_eq!(sent(), [full; 6]);
}

#[tokio::test]
async fn spans_refused_for_now_are_sent_again() {
    for status in [429, 502, 503, 504] {
        let world = world();
        world.spans.take_span(span(1));
        world.answers(status);
        world.exporter.send_spans(9).await;
        world.spans.take_span(span(2));
        world.exporter.send_spans(9).await;
        let counts: Vec<_> = world.sent_events().iter().map(Vec::len).collect();
        assert_eq!(counts, [1, 2], "{status}");
    }
}

#[tokio::test]
async fn without_an_answer_spans_wait() {
    let world = world();
    world.spans.take_span(span(1));
    world.collector.answers.lock().push_back(Err("refused"));
    world.exporter.send_spans(9).await;
    let is_failing = || world.exporter.is_failing[0].load(Ordering::Relaxed);
    assert!(is_failing());
    world.exporter.send_spans(9).await;
    assert_eq!(world.sent_events().len(), 2);
    assert!(!is_failing());
}

#[tokio::test]
async fn spans_of_a_request_that_is_cut_off_wait() {
    #[derive(Debug)]
    struct Silent;

    impl Collector for Silent {
        async fn post_blocking(
            &self,
            _: CollectorRequest,
        ) -> Result<CollectorResponse, UnreachableError> {
            std::future::pending().await
        }
    }

    let spans = Arc::<SpanQueue>::default();
    let settings = world().exporter.settings;
    let exporter = OtlpExporter::new(Silent, settings, "posthaste", spans.clone());
    spans.take_span(span(1));
    tokio::select! {
        biased;
        _ = exporter.send_spans(1) => panic!("nobody answers"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(spans.take_first(2).spans(), [span(1)]);
}

#[tokio::test]
async fn requests_of_one_call_are_bounded() {
    let world = world();
    (0..=SPANS_PER_REQUEST_MAX).for_each(|number| world.spans.take_span(span(number)));
    assert!(world.exporter.send_spans(1).await);
    assert_eq!(world.sent_events().len(), 1);
    assert_eq!(world.spans.take_first(2).spans().len(), 1);
}

/// A collector may take traces alone.
#[tokio::test]
async fn signals_fail_each_by_itself() {
    let world = world();
    world.answers(404);
    let points = [point("accepted", "a", PointValue::Count(1))];
    let since = Temporality::Since(AT);
    assert!(!world.exporter.send_metrics(&points, since, AT).await);
    world.spans.take_span(span(1));
    assert!(world.exporter.send_spans(9).await);
    let are_failing = world.exporter.is_failing.each_ref();
    assert_eq!(
        are_failing.map(|it| it.load(Ordering::Relaxed)),
        [false, true]
    );
}

#[tokio::test]
async fn refused_spans_are_lost_and_the_rest_is_sent() {
    let world = world();
    (0..=SPANS_PER_REQUEST_MAX).for_each(|number| world.spans.take_span(span(number)));
    world.answers(400);
    world.exporter.send_spans(9).await;
    let counts: Vec<_> = world.sent_events().iter().map(Vec::len).collect();
    assert_eq!(counts, [SPANS_PER_REQUEST_MAX, 1]);
    assert!(world.spans.take_first(1).spans().is_empty());
}

#[tokio::test]
async fn spans_that_the_collector_rejects_are_counted() {
    let world = world();
    world.spans.take_span(span(1));
    let rejected = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 1,
            error_message: "too old".to_owned(),
        }),
    };
    world.exporter.note_rejected(&rejected.encode_to_vec());
    assert_eq!(world.spans.take_lost(), 1);
}

fn point(name: &'static str, label: &str, value: PointValue) -> MetricPoint {
    MetricPoint {
        name,
        help: "",
        unit: "1",
        labels: vec![("topic".to_owned(), label.to_owned())],
        value,
    }
}

#[tokio::test]
async fn points_of_a_metric_are_together() {
    let world = world();
    let times = MetricDistribution {
        bounds: vec![1.0, 2.0],
        counts: vec![3, 0, 1],
        sum: 9.5,
    };
    let points = vec![
        point("accepted", "a", PointValue::Count(1)),
        point("waiting", "a", PointValue::Number(0.5)),
        point("accepted", "b", PointValue::Count(2)),
        point("seconds", "a", PointValue::Times(times)),
    ];
    let since = Temporality::SinceLast(AT);
    world
        .exporter
        .send_metrics(&points, since, AT + Duration::from_mins(1))
        .await;
    let requests = world.collector.requests.lock();
    assert_eq!(requests[0].url.path(), "/otlp/v1/metrics");
    let sent = ExportMetricsServiceRequest::decode(&*requests[0].body).unwrap();
    let metrics = &sent.resource_metrics[0].scope_metrics[0].metrics;
    let names: Vec<_> = metrics.iter().map(|metric| &*metric.name).collect();
    assert_eq!(names, ["accepted", "seconds", "waiting"]);
    let Some(Data::Sum(sum)) = &metrics[0].data else {
        panic!("{metrics:?}")
    };
    assert_eq!((sum.data_points.len(), sum.is_monotonic), (2, true));
    assert_eq!(
        sum.aggregation_temporality,
        i32::from(AggregationTemporality::Delta)
    );
    let Some(Data::Histogram(times)) = &metrics[1].data else {
        panic!("{metrics:?}")
    };
    let point = &times.data_points[0];
    assert_eq!((point.count, point.sum), (4, Some(9.5)));
    assert_eq!(
        (&*point.bucket_counts, &*point.explicit_bounds),
        (&[3, 0, 1][..], &[1.0, 2.0][..])
    );
    let span = point.time_unix_nano - point.start_time_unix_nano;
    assert_eq!(span, 60_000_000_000);
}
