//! Other engines read the files as they lie. `tests/run` runs this with a Python that has `duckdb`
//! and `pytz`: `POSTHASTE_DUCKDB=…/bin/python cargo test -p posthaste-delivery-log --test log
//! duckdb -- --ignored`

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use posthaste_delivery_log::{MergeLimits, write_file};

use crate::support::{HOUR_MS, SMALL, fresh, hour_of_records, merge_all, merged, record};

const SCRIPT: &str = r#"
import duckdb, sys
types = "{'date': DATE, 'hour': VARCHAR}"
options = f"hive_partitioning = true, union_by_name = true, hive_types = {types}"
files = f"read_parquet('{sys.argv[1]}/**/*.parquet', {options})"
one = lambda query: duckdb.sql(query.replace("LOG", files)).fetchall()
print(one("select count(*), count(distinct record_id) from LOG"))
print(one("select hour, count(distinct record_id) from LOG group by hour order by hour"))
print(one("select result, status, count(distinct record_id) from LOG group by all order by all"))
minute = "strftime(time at time zone 'UTC', '%H:%M')"
found = f"select topic, answer, payload->>'$.n', {minute}, duration_ms from LOG"
print(one(found + " where event_id = 'event-9e3779b97f4a7c15'"))
print(one("select count(*) from LOG where next_attempt_at is null"))
columns = "select column_name, column_type from (describe select * from LOG)"
for column in one(columns + " where column_name in ('time', 'status', 'payload', 'date', 'hour') order by 1"):
    print(column)
"#;

/// Runs the queries that follow the folder. Athena's function has another name in `DuckDB`.
const QUERIES: &str = r#"
import duckdb, sys
types = "{'date': DATE, 'hour': VARCHAR}"
options = f"hive_partitioning = true, union_by_name = true, hive_types = {types}"
duckdb.sql("create macro approx_percentile(x, p) as approx_quantile(x, p)")
duckdb.sql(f"create view posthaste_log as from read_parquet('{sys.argv[1]}/**/*.parquet', {options})")
for query in sys.argv[2:]:
    rows = duckdb.sql(query).fetchall()
    print(len(rows), [str(value) for value in rows[0]])
"#;

/// The queries of the section about Athena, for records of any day.
fn documented_queries() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/delivery-log.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page
        .split("```sql\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0);
    let queries = blocks.filter(|block| block.starts_with("SELECT"));
    queries
        .map(|query| query.replace("'2026-11-20'", "'1970-01-01'"))
        .collect()
}

#[test]
#[ignore = "needs POSTHASTE_DUCKDB: a Python with duckdb and pytz"]
fn duckdb_runs_the_queries_of_the_documents() {
    let python = std::env::var("POSTHASTE_DUCKDB").expect("POSTHASTE_DUCKDB names a Python");
    let folder = tempfile::tempdir().unwrap();
    let mut records = hour_of_records(3, 200);
    // An event with its fourth attempt, of which three were written twice.
    for (number, record) in records.iter_mut().take(4).enumerate() {
        record.delivery_key = "often".to_owned();
        record.event_id = Some("often".to_owned());
        record.subscription = "billing".to_owned();
        record.topic = "orders".to_owned();
        record.status = Some(if number < 3 { 503 } else { 200 });
        record.endpoint = Some("https://slow.example.com/".to_owned());
        record.duration_ms = Some(9_000);
    }
    put(
        folder.path(),
        &fresh(3, 0),
        &write_file(&records, SMALL).unwrap(),
    );
    put(
        folder.path(),
        &fresh(3, 1),
        &write_file(&records[..3], SMALL).unwrap(),
    );
    let run = Command::new(python)
        .args(["-c", QUERIES])
        .arg(folder.path())
        .args(documented_queries())
        .output();
    let run = run.unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let expected = [
        "22 ['orders', 'billing', '2026-03-07 03:00:00+00:00', '4', '75.0']",
        "2 ['https://slow.example.com/', '4', '9000']",
        "1 ['orders', 'billing', 'often', '4', '2026-03-07 03:00:53.999000+00:00']",
    ];
    assert_eq!(
        String::from_utf8_lossy(&run.stdout)
            .lines()
            .collect::<Vec<_>>(),
        expected
    );
}

fn put(folder: &Path, key: &str, file: &Bytes) {
    let path = folder.join(key);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, file).unwrap();
}

#[test]
#[ignore = "needs a Python with duckdb and pytz; tests/run installs it and runs this"]
fn duckdb_reads_the_files_as_they_lie() {
    let python = std::env::var("POSTHASTE_DUCKDB").expect("POSTHASTE_DUCKDB names a Python");
    let folder = tempfile::tempdir().unwrap();
    let hours = [3, 4].map(|hour| hour_of_records(hour, 200));
    let files: Vec<_> = hours[0]
        .chunks(40)
        .map(|it| write_file(it, SMALL).unwrap())
        .collect();
    put(
        folder.path(),
        &merged(3, 0),
        &merge_all(files, MergeLimits::default())[0],
    );
    // A record that was written twice.
    put(
        folder.path(),
        &fresh(4, 0),
        &write_file(&hours[1], SMALL).unwrap(),
    );
    put(
        folder.path(),
        &fresh(4, 1),
        &write_file(&hours[1][..1], SMALL).unwrap(),
    );
    put(
        folder.path(),
        &fresh(4, 2),
        &write_file(&[record(1, 4 * HOUR_MS)], SMALL).unwrap(),
    );
    let run = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let expected = [
        "[(402, 401)]",
        "[('03', 200), ('04', 201)]",
        "[('delivered', 200, 361), ('retry', 503, 40)]",
        "[('topic-1', 'answer to 1', '1', '04:00', 1)]",
        "[(361,)]",
        "('date', 'DATE')",
        "('hour', 'VARCHAR')",
        "('payload', 'VARCHAR')",
        "('status', 'INTEGER')",
        "('time', 'TIMESTAMP WITH TIME ZONE')",
    ];
    assert_eq!(
        String::from_utf8_lossy(&run.stdout)
            .lines()
            .collect::<Vec<_>>(),
        expected
    );
}
