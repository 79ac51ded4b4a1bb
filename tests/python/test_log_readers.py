"""Programs that are given the folder of the delivery log read every file in it: a damaged one is not there.

Run by main.py."""

import datetime
import io
import json
import os
import pathlib
import time
import unittest
import urllib.request

import duckdb
import pandas
import polars
import pyarrow.dataset

import serving

EVENTS = 5

NO_PARQUET = "no Parquet"


def old_hour():
    """An hour that is over, so that it is merged at once."""
    return (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=2)).strftime(
        "date=%Y-%m-%d/hour=%H"
    )


def put(folder, name, content):
    file = folder / old_hour() / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def publish(url, key):
    events = [
        {"specversion": "1.0", "id": str(number), "source": "/tests", "type": "order.paid"}
        for number in range(EVENTS)
    ]
    headers = {"aeg-sas-key": key, "content-type": "application/cloudevents-batch+json"}
    request = urllib.request.Request(url, json.dumps(events).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=serving.PATIENCE_SECS) as answer:
        answer.read()


def wait_until(what, holds):
    deadline = time.monotonic() + serving.PATIENCE_SECS
    while time.monotonic() < deadline:
        if holds():
            return
        time.sleep(serving.POLL_SECS)
    raise TimeoutError(f"waited for {what}")


def file_of_the_log():
    """A file with the records of some events."""
    sink = serving.Sink()
    with serving.Server(os.environ["POSTHASTE_BIN"]) as server:
        log = pathlib.Path(server.folder.name) / "log"
        publish(*server.create_topic("orders", "CloudEvents", sink.url("/hook"))[:2])
        sink.take(EVENTS)
        wait_until("the log", lambda: server.manage("GET", "/topics/orders/events")["records"][EVENTS - 1:])
        files = list(log.glob("date=*/hour=*/*.parquet"))
        return max(files, key=lambda file: file.stat().st_size).read_bytes()


class Readers(unittest.TestCase):
    def test_a_damaged_file_breaks_no_reader_of_the_folder(self):
        whole = file_of_the_log()

        def prepare(folder):
            put(folder / "log", "08-whole.parquet", whole)
            put(folder / "log", "07-damaged.parquet", NO_PARQUET.encode())
            # An earlier version put them aside within the log.
            put(folder / "log" / "damaged", "06-before.parquet", NO_PARQUET.encode())

        with serving.Server(os.environ["POSTHASTE_BIN"], prepare) as server:
            folder = pathlib.Path(server.folder.name)
            log, aside = folder / "log", folder / "log-damaged"
            wait_until("the damaged files to be moved", lambda: len(list(aside.rglob("*.parquet"))) == 2)
            # What is being written has another name, which Polars reads too.
            self.assertEqual(server.stop(), 0)
            self.assertFalse((log / "damaged").exists())
            expected = set(polars.read_parquet(io.BytesIO(whole))["event_id"])
            self.assertTrue(expected)
            found = {
                "pandas": lambda: pandas.read_parquet(log)["event_id"],
                "PyArrow": lambda: pyarrow.dataset.dataset(log).to_table()["event_id"].to_pylist(),
                "Polars": lambda: polars.read_parquet(log)["event_id"],
                "Polars, lazily": lambda: polars.scan_parquet(log).collect()["event_id"],
                "DuckDB": lambda: (
                    row[0] for row in duckdb.sql(f"select event_id from '{log}/**/*.parquet'").fetchall()
                ),
            }
            for name, read in found.items():
                with self.subTest(name):
                    self.assertEqual(set(read()), expected)
