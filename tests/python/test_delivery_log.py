"""Ten thousand events with mixed outcomes: the API, and DuckDB over the log's files, have exactly the
attempts that the sink saw.

Run by main.py."""

import collections
import concurrent.futures
import http.server
import json
import pathlib
import threading
import time
import unittest
import urllib.parse
import urllib.request

import duckdb

import serving

EVENTS = 10_000
EVENTS_PER_REQUEST = 100
ASKING_AT_ONCE = 4

TOPIC = "logged"

Attempt = collections.namedtuple("Attempt", "id webhook_id number status")


def failures(number):
    """The answers before an event is taken. After ten failures in a row the link would rest."""
    if number % 500 == 11:
        return (500, 502)
    return (503,) if number % 25 == 3 else ()


def judge(number, attempt):
    """Most events are taken, some on the second or third attempt, a few never."""
    if number % 50 == 7:
        return 400
    before = failures(number)
    return before[attempt - 1] if attempt <= len(before) else 200


def number_of(event_id):
    return int(event_id.removeprefix("order-"))


class Endpoint:
    """Answers by `judge`, in words, and remembers every attempt."""

    def __init__(self):
        self.attempts = []
        attempts = self.attempts

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                event = json.loads(self.rfile.read(int(self.headers["content-length"])))
                number = int(self.headers["aeg-delivery-count"]) + 1
                status = judge(number_of(event["id"]), number)
                attempts.append(Attempt(event["id"], self.headers["webhook-id"], number, status))
                answer = f"answer to {event['id']}".encode()
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.send_header("content-type", "text/plain")
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"


def wait_until(what, holds):
    deadline = time.monotonic() + serving.PATIENCE_SECS
    while time.monotonic() < deadline:
        if holds():
            return
        time.sleep(serving.POLL_SECS)
    raise TimeoutError(f"waited for {what}")


def publish(url, key):
    headers = {"aeg-sas-key": key, "content-type": "application/cloudevents-batch+json"}
    for first in range(0, EVENTS, EVENTS_PER_REQUEST):
        events = [
            {"specversion": "1.0", "id": f"order-{number}", "source": "/tests", "type": "order.paid",
             "data": {"n": number}}
            for number in range(first, first + EVENTS_PER_REQUEST)
        ]
        request = urllib.request.Request(url, json.dumps(events).encode(), headers, method="POST")
        with urllib.request.urlopen(request, timeout=serving.PATIENCE_SECS) as answer:
            answer.read()


def pages(path):
    """All records of a list, page by page."""
    cursor, separator = "", "&" if "?" in path else "?"
    while cursor is not None:
        page = serving.SERVER.manage("GET", f"{path}{separator}limit=1000{cursor}")
        yield from page["records"]
        following = page.get("cursor")
        cursor = None if following is None else f"&cursor={urllib.parse.quote(following)}"


def attempts_of(records):
    return {
        Attempt(record["id"], record["webhookId"], record["attempt"], record["status"])
        for record in records
        if record["kind"] == "attempt"
    }


def listed(path):
    return attempts_of(pages(path))


def ask_side_by_side(paths):
    """The answers to these questions, in their order."""
    with concurrent.futures.ThreadPoolExecutor(ASKING_AT_ONCE) as pool:
        yield from pool.map(lambda path: serving.SERVER.manage("GET", path), paths)


class Duck:
    """DuckDB over the log's files as they lie."""

    def __init__(self):
        folder = pathlib.Path(serving.SERVER.folder.name) / "log"
        types = "{'date': DATE, 'hour': VARCHAR}"
        options = f"hive_partitioning = true, union_by_name = true, hive_types = {types}"
        self.log = f"read_parquet('{folder}/**/*.parquet', {options})"

    def rows(self, query):
        """The rows of a query; asked again where a merge has just replaced files."""
        while True:
            try:
                return duckdb.sql(query.replace("LOG", self.log)).fetchall()
            except duckdb.IOException:
                time.sleep(serving.POLL_SECS)


class TheLog(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.endpoint = Endpoint()
        retries = {
            "schedule": ["PT1S"],
            "waitFloors": {"default": "PT0S", "408": "PT0S", "429": "PT0S", "503": "PT0S"},
        }
        url, key, _ = serving.SERVER.create_topic(
            TOPIC, "CloudEvents", cls.endpoint.url, retryPolicy=retries, deadLetter={"delay": "PT0S"}
        )
        publish(url, key)
        expected = sum(1 + len(failures(number)) for number in range(EVENTS))
        wait_until("all attempts", lambda: len(cls.endpoint.attempts) >= expected)
        cls.seen = set(cls.endpoint.attempts)
        cls.duck = Duck()
        count = f"select count(distinct record_id) from LOG where kind = 'attempt' and topic = '{TOPIC}'"
        wait_until("the log to have them", lambda: cls.duck.rows(count)[0][0] >= len(cls.endpoint.attempts))

    def test_the_list_has_every_attempt_once(self):
        records = [record for record in pages(f"/topics/{TOPIC}/events") if record["kind"] == "attempt"]
        self.assertEqual(len(records), len(self.endpoint.attempts))
        self.assertEqual(len({record["recordId"] for record in records}), len(records))
        self.assertEqual(listed(f"/topics/{TOPIC}/events"), self.seen)
        self.assertEqual(listed(f"/topics/{TOPIC}/subscriptions/all/attempts"), self.seen)

    def test_lists_select(self):
        for query, holds in [
            ("result=dead-lettered", lambda attempt: attempt.status == 400),
            ("result=retry", lambda attempt: attempt.status >= 500),
            ("status=503", lambda attempt: attempt.status == 503),
        ]:
            selected = {attempt for attempt in self.seen if holds(attempt)}
            self.assertEqual(listed(f"/topics/{TOPIC}/events?{query}"), selected, query)

    def test_duckdb_counts_what_the_sink_saw(self):
        query = (
            "select event_id, webhook_id, attempt, status, count(distinct record_id) from LOG "
            f"where kind = 'attempt' and topic = '{TOPIC}' group by all"
        )
        rows = self.duck.rows(query)
        self.assertEqual({row[4] for row in rows}, {1})
        self.assertEqual({Attempt(*row[:4]) for row in rows}, self.seen)

    def test_what_became_of_each_event(self):
        by_id = collections.defaultdict(list)
        for attempt in sorted(self.endpoint.attempts, key=lambda attempt: attempt.number):
            by_id[attempt.id].append(attempt)
        self.assertEqual(len(by_id), EVENTS)
        paths = (f"/topics/{TOPIC}/events/{event_id}" for event_id in by_id)
        for event_id, answer in zip(by_id, ask_side_by_side(paths)):
            self.assertEqual(answer["id"], event_id)
            [delivery] = answer["deliveries"]
            attempts = delivery["attempts"]
            found = [Attempt(event_id, it["webhookId"], it["number"], it["status"]) for it in attempts]
            self.assertEqual(found, by_id[event_id])
            self.assertEqual({it["answer"] for it in attempts}, {f"answer to {event_id}"})
            self.assertTrue(all(it["durationMs"] >= 0 for it in attempts))
            state = "dead-lettered" if number_of(event_id) % 50 == 7 else "delivered"
            self.assertEqual(delivery["state"], state)

    def test_each_request_is_found_by_its_webhook_id(self):
        by_webhook_id = collections.defaultdict(set)
        for attempt in self.seen:
            by_webhook_id[attempt.webhook_id].add(attempt)
        attempts = f"/topics/{TOPIC}/subscriptions/all/attempts"
        paths = (f"{attempts}?webhookId={webhook_id}" for webhook_id in by_webhook_id)
        for webhook_id, answer in zip(by_webhook_id, ask_side_by_side(paths)):
            self.assertEqual(attempts_of(answer["records"]), by_webhook_id[webhook_id])
            for record in (it for it in answer["records"] if it["kind"] == "attempt"):
                self.assertEqual(record["answer"], f"answer to {record['id']}")
                self.assertGreaterEqual(record["durationMs"], 0)
