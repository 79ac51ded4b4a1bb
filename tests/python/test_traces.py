"""Traces and metrics as OpenTelemetry's own protocol package reads them: a collector that decodes what `serve` sends.

Run by main.py."""

import json
import os
import time
import unittest
import urllib.request

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

import serving

# The span of a producer.
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def decoded(request):
    kinds = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
    assert request.headers["content-type"] == "application/x-protobuf", request.headers
    assert request.headers["x-key"] == "a secret", request.headers
    message = kinds[request.path]()
    message.ParseFromString(request.body)
    return message


def values(attributes):
    """The attributes of anything, by their names."""
    return {it.key: getattr(it.value, it.value.WhichOneof("value")) for it in attributes}


class Collector(serving.Sink):
    """A collector that keeps what it gets."""

    def __init__(self):
        super().__init__(decoded)
        self.spans, self.metrics, self.resources = [], {}, []

    def read_one(self):
        """Takes one request, whichever it is."""
        [request] = self.take(1)
        if request.path == "/v1/traces":
            for of_resource in request.read.resource_spans:
                self.resources.append(values(of_resource.resource.attributes))
                for of_scope in of_resource.scope_spans:
                    self.spans.extend(of_scope.spans)
        else:
            for of_resource in request.read.resource_metrics:
                self.resources.append(values(of_resource.resource.attributes))
                for of_scope in of_resource.scope_metrics:
                    self.metrics.update({metric.name: metric for metric in of_scope.metrics})

    def wait_until(self, is_there):
        deadline = time.monotonic() + serving.PATIENCE_SECS
        while not is_there():
            assert time.monotonic() < deadline, [span.name for span in self.spans]
            self.read_one()


def start(test, collector):
    """A server that exports to a collector, until the end of a test."""
    options = [
        "--otlp-endpoint", collector.url(""),
        "--otlp-headers", "x-key=a%20secret",
        "--otlp-resource", "deployment.environment.name=test",
        "--trace-endpoints", "on",
    ]
    return test.enterContext(serving.Server(os.environ["POSTHASTE_BIN"], options=options))


class Traces(unittest.TestCase):
    def setUp(self):
        self.collector = Collector()
        self.server = start(self, self.collector)

    def publish(self, topic, answer):
        """Publishes an event of the producer's trace, whose endpoint refuses what the judge raises for."""
        sink = serving.Sink(answer, refusal=500)
        schedule = {"retryPolicy": {"schedule": ["PT1S"]}}
        url, key, _ = self.server.create_topic(topic, "CloudEvents", sink.url("/hook"), **schedule)
        event = {
            "specversion": "1.0", "id": "E-1", "source": "/shop", "type": "order.paid",
            "traceparent": f"00-{TRACE}-{SPAN}-01",
        }
        headers = {"content-type": "application/cloudevents+json", "aeg-sas-key": key}
        request = urllib.request.Request(url, json.dumps(event).encode(), headers, method="POST")
        urllib.request.urlopen(request, timeout=serving.PATIENCE_SECS).close()
        return sink

    def spans_of(self, topic, count):
        """The spans of a topic, once there are so many, in the order of their ends."""
        collector = self.collector

        def found():
            named = [span for span in collector.spans if span.name.split(" ")[1].split("/")[0] == topic]
            return sorted(named, key=lambda span: span.end_time_unix_nano)

        collector.wait_until(lambda: len(found()) >= count)
        return found()

    def test_spans_are_parts_of_the_producer_s_trace(self):
        sink = self.publish("orders", lambda request: None)
        [delivered] = sink.take(1)
        spans = self.spans_of("orders", 3)
        self.assertEqual({span.trace_id.hex() for span in spans}, {TRACE})
        by_name = {span.name: span for span in spans}
        publish, attempt = by_name["publish orders"], by_name["attempt orders/all"]
        self.assertEqual(publish.parent_span_id.hex(), SPAN)
        self.assertEqual((publish.kind, attempt.kind), (Span.SPAN_KIND_PRODUCER, Span.SPAN_KIND_CLIENT))
        for span in (attempt, by_name["wait orders/all"]):
            self.assertEqual(span.parent_span_id, publish.span_id)
            self.assertGreaterEqual(span.end_time_unix_nano, span.start_time_unix_nano)
        said = values(attempt.attributes)
        self.assertEqual((said["http.response.status_code"], said["server.address"]), (200, "127.0.0.1"))
        self.assertEqual((said["messaging.message.id"], said["posthaste.verdict"]), ("E-1", "delivered"))
        self.assertNotIn("/hook", str(attempt), "the path of an endpoint may be a secret")
        # The endpoint is told the span of its request.
        self.assertEqual(delivered.headers["traceparent"], f"00-{TRACE}-{attempt.span_id.hex()}-01")
        resource = self.collector.resources[0]
        named = (resource["service.name"], resource["deployment.environment.name"])
        self.assertEqual(named, ("posthaste", "test"))

    def test_attempt_that_failed_says_why(self):
        answers = iter([ConnectionError("no"), None])

        def judge(_):
            answer = next(answers)
            if answer is not None:
                raise answer

        self.publish("refunds", judge)
        attempts = [span for span in self.spans_of("refunds", 5) if span.name.startswith("attempt ")]
        first, second = attempts
        self.assertEqual(first.status.code, Status.STATUS_CODE_ERROR)
        self.assertEqual(first.status.message, "the endpoint answered 500")
        self.assertEqual(values(first.attributes)["posthaste.verdict"], "retry")
        self.assertEqual(second.status.code, Status.STATUS_CODE_UNSET)
        self.assertEqual(values(second.attributes)["posthaste.attempt"], 2)

    def test_metrics_are_those_of_the_page(self):
        self.publish("orders", lambda request: None).take(1)
        # The last ones are sent at the end.
        self.assertEqual(self.server.stop(), 0)
        self.collector.wait_until(lambda: "posthaste_publish_duration_seconds" in self.collector.metrics)
        metrics = self.collector.metrics
        accepted = metrics["posthaste_events_accepted_total"]
        self.assertTrue(accepted.sum.is_monotonic)
        [point] = accepted.sum.data_points
        self.assertEqual((values(point.attributes), point.as_int), ({"topic": "orders"}, 1))
        [version] = metrics["posthaste_build_info"].gauge.data_points
        self.assertEqual(list(values(version.attributes)), ["version"])
        times = metrics["posthaste_publish_duration_seconds"]
        self.assertEqual(times.unit, "s")
        [point] = times.histogram.data_points
        self.assertEqual((point.count, sum(point.bucket_counts)), (1, 1))
        self.assertEqual(len(point.bucket_counts), len(point.explicit_bounds) + 1)
