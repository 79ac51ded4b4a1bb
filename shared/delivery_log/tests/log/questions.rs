//! Look-ups and lists find the same records as a walk over all of them.

use posthaste_core::delivery_log::{
    LogRecord, LogResult, RecordFilter, RecordKind, RecordLookup, StatusRange, gather_by_delivery,
    without_duplicates,
};
use posthaste_core::model::{LOG_LOOK_UP_RECORDS_MAX, Timestamp};
use posthaste_delivery_log::LogFile;
use proptest::prelude::*;

use crate::support::{
    DAY, HOUR_MS, MemoryLog, MemoryReader, SMALL, any_records, fresh, hour_of_records, in_order,
    merge_all, merged, record, rows, take_reads,
};

/// Three hours: one of fresh files, one of both with copies, one that is merged.
fn three_hours() -> (MemoryLog, Vec<LogRecord>) {
    let hours = [0, 1, 2].map(|hour| hour_of_records(hour, 300));
    let merged_file = |records: &[LogRecord]| {
        let files = records
            .chunks(60)
            .map(|it| posthaste_delivery_log::write_file(it, SMALL).unwrap());
        let limits = posthaste_delivery_log::MergeLimits {
            groups: SMALL,
            ..Default::default()
        };
        merge_all(files.collect(), limits).remove(0)
    };
    let memory = MemoryLog::default()
        .with(merged(0, 0), merged_file(&hours[0]))
        .with(merged(1, 0), merged_file(&hours[1][..200]))
        .with_records(fresh(1, 40), &hours[1][150..250])
        .with_records(fresh(1, 50), &hours[1][240..])
        .with_records(fresh(2, 0), &hours[2][..150])
        .with_records(fresh(2, 30), &hours[2][150..]);
    (memory, hours.concat())
}

#[tokio::test]
async fn every_record_is_found_by_its_event_and_by_its_request() {
    let (memory, records) = three_hours();
    let (reader, files) = memory.reader();
    for record in records.iter().step_by(7) {
        let by_event = RecordLookup {
            event_id: record.event_id.clone(),
            ..RecordLookup::default()
        };
        let by_request = RecordLookup {
            webhook_id: record.webhook_id.clone(),
            ..RecordLookup::default()
        };
        let in_topic = RecordLookup {
            topic: Some(record.topic.clone()),
            ..by_event.clone()
        };
        for look_up in [by_event, by_request, in_topic] {
            assert_eq!(
                reader.look_up(&files, &look_up).await.unwrap().records,
                std::slice::from_ref(record),
                "{look_up:?}"
            );
        }
    }
}

/// Look-ups by an unknown id, another topic or another time find no records.
#[tokio::test]
async fn unmatched_look_up_finds_no_records() {
    let (memory, records) = three_hours();
    let (reader, files) = memory.reader();
    let known = records[0].event_id.clone();
    for look_up in [
        RecordLookup {
            event_id: Some("event-x".into()),
            ..RecordLookup::default()
        },
        RecordLookup {
            event_id: Some(String::new()),
            ..RecordLookup::default()
        },
        RecordLookup {
            event_id: known.clone(),
            topic: Some("other".into()),
            ..RecordLookup::default()
        },
        RecordLookup {
            event_id: known.clone(),
            from: Some(Timestamp::from_millis(DAY + HOUR_MS)),
            ..RecordLookup::default()
        },
        RecordLookup {
            event_id: known,
            to: Some(records[0].time),
            ..RecordLookup::default()
        },
    ] {
        assert_eq!(
            reader.look_up(&files, &look_up).await.unwrap().records,
            [],
            "{look_up:?}"
        );
    }
}

#[tokio::test]
async fn the_history_of_an_event_is_gathered_over_hours() {
    let retry = record(10, 100);
    let delivered = LogRecord {
        record_id: "f".repeat(32),
        time: Timestamp::from_millis(DAY + HOUR_MS + 5),
        result: LogResult::Delivered,
        attempt: 2,
        payload: None,
        next_attempt_at: None,
        ..retry.clone()
    };
    let memory = MemoryLog::default()
        .with_records(
            fresh(0, 0),
            &[hour_of_records(0, 10), vec![retry.clone()]].concat(),
        )
        .with_records(fresh(1, 0), &[delivered]);
    let (reader, files) = memory.reader();
    let look_up = RecordLookup {
        event_id: retry.event_id.clone(),
        ..RecordLookup::default()
    };
    let histories = gather_by_delivery(reader.look_up(&files, &look_up).await.unwrap().records);
    assert_eq!(histories.len(), 1);
    let attempts: Vec<_> = histories[0]
        .attempts()
        .map(|it| it.result.as_str())
        .collect();
    assert_eq!(
        (histories[0].state.as_str(), attempts),
        ("delivered", vec!["retry", "delivered"])
    );
    assert_eq!(histories[0].payload, retry.payload);
}

#[tokio::test]
async fn lists_are_the_newest_that_are_selected_over_all_pages() {
    let (memory, records) = three_hours();
    let (reader, files) = memory.reader();
    let all = RecordFilter::default();
    for filter in [
        all.clone(),
        RecordFilter {
            topic: Some("topic-1".into()),
            ..all.clone()
        },
        RecordFilter {
            topic: Some("topic-1".into()),
            subscription: Some("sub-4".into()),
            ..all.clone()
        },
        RecordFilter {
            result: Some(LogResult::Retry),
            subscription: Some("sub-0".into()),
            ..all.clone()
        },
        RecordFilter {
            status: Some(503.into()),
            event_type: Some("type-0".into()),
            ..all.clone()
        },
        RecordFilter {
            status: StatusRange::parse("2xx"),
            subscription: Some("sub-1".into()),
            ..all.clone()
        },
        RecordFilter {
            status: StatusRange::parse("4xx"),
            ..all.clone()
        },
        RecordFilter {
            kind: Some(RecordKind::Held),
            ..all.clone()
        },
        RecordFilter {
            webhook_id: records[77].webhook_id.clone(),
            ..all.clone()
        },
        RecordFilter {
            from: Some(records[100].time),
            to: Some(records[700].time),
            ..all
        },
    ] {
        let expected = in_order(
            records
                .iter()
                .filter(|it| filter.matches(it))
                .cloned()
                .collect(),
        );
        assert_eq!(
            all_pages(&reader, &files, filter.clone(), 37).await,
            expected,
            "{filter:?}"
        );
    }
}

/// Records that all have one event's id, and one request's.
fn of_one_id(records: Vec<LogRecord>) -> Vec<LogRecord> {
    let same = |it| LogRecord {
        event_id: Some("same".into()),
        webhook_id: Some("msg_same".into()),
        ..it
    };
    records.into_iter().map(same).collect()
}

fn same_id() -> RecordLookup {
    RecordLookup {
        event_id: Some("same".into()),
        ..RecordLookup::default()
    }
}

/// Ids that repeat without end return their newest records, and say that there are more.
#[tokio::test]
async fn repeated_id_returns_its_newest_records() {
    let few = of_one_id(hour_of_records(0, 40));
    let many = of_one_id(hour_of_records(1, 1_500));
    let (early, late) = many.split_at(700);
    // The files of the hour lie in the order of their keys, which is not that of their times.
    let memory = MemoryLog::default()
        .with_records(fresh(0, 0), &few)
        .with_records(fresh(1, 1), early)
        .with_records(fresh(1, 0), late);
    let (reader, files) = memory.reader();
    let found = reader.look_up(&files, &same_id()).await.unwrap();
    let newest = in_order(many)[..LOG_LOOK_UP_RECORDS_MAX].to_vec();
    assert_eq!((found.records, found.is_cut), (newest, true));
    let to = Some(Timestamp::from_millis(DAY + HOUR_MS));
    let found = reader
        .look_up(&files, &RecordLookup { to, ..same_id() })
        .await
        .unwrap();
    assert_eq!(
        (found.records.len(), found.is_cut, found.searched_from),
        (40, false, None)
    );
}

#[tokio::test]
async fn a_look_up_can_be_for_one_subscription() {
    let records = of_one_id(hour_of_records(0, 300));
    let (reader, files) = MemoryLog::default()
        .with_records(fresh(0, 0), &records)
        .reader();
    let look_up = RecordLookup {
        subscription: Some("sub-4".into()),
        ..same_id()
    };
    let expected = in_order(
        records
            .into_iter()
            .filter(|it| look_up.matches(it))
            .collect(),
    );
    assert_eq!(
        reader.look_up(&files, &look_up).await.unwrap().records,
        expected
    );
}

/// Pages of a request's records continue until all were listed, without a bound of their own.
#[tokio::test]
async fn records_of_a_request_are_listed_page_by_page() {
    let hours = [
        of_one_id(hour_of_records(0, 700)),
        of_one_id(hour_of_records(1, 700)),
    ];
    let memory = MemoryLog::default()
        .with_records(fresh(0, 0), &hours[0])
        .with_records(fresh(1, 0), &hours[1]);
    let (reader, files) = memory.reader();
    let sub = |name: &str| Some(name.to_owned());
    for (subscription, limit) in [(None, 300), (sub("sub-2"), 7), (sub("sub-2"), 1_000)] {
        let mut filter = RecordFilter {
            webhook_id: Some("msg_same".into()),
            subscription,
            ..RecordFilter::default()
        };
        let expected = hours
            .concat()
            .into_iter()
            .filter(|it| filter.matches(it))
            .collect();
        let mut records = Vec::new();
        loop {
            let page = reader
                .list_request(&files, &filter, limit, || true)
                .await
                .unwrap();
            assert!(page.records.len() <= limit);
            records.extend(page.records);
            filter.after = page.next;
            if filter.after.is_none() {
                break;
            }
        }
        assert_eq!(records, in_order(expected), "{limit}");
    }
}

/// Forty hours with a record of the same id each.
fn forty_hours() -> MemoryLog {
    (0..40).fold(MemoryLog::default(), |memory, hour| {
        memory.with_records(fresh(hour, 0), &of_one_id(hour_of_records(hour, 1)))
    })
}

#[tokio::test]
async fn a_search_whose_time_is_over_says_how_far_it_came() {
    let (reader, files) = forty_hours().reader();
    let found = reader
        .look_up_while(&files, &same_id(), || false)
        .await
        .unwrap();
    let searched_from = found.searched_from.unwrap();
    assert!(found.records.len() < 40 && !found.is_cut);
    let rest = RecordLookup {
        to: Some(searched_from),
        ..same_id()
    };
    let older = reader.look_up_while(&files, &rest, || false).await.unwrap();
    assert_eq!(
        (
            older.records.len() + found.records.len(),
            older.searched_from
        ),
        (40, None)
    );
    let mut filter = RecordFilter {
        webhook_id: Some("msg_same".into()),
        ..RecordFilter::default()
    };
    let page = reader
        .list_request(&files, &filter, 1_000, || false)
        .await
        .unwrap();
    assert_eq!(page.records, found.records);
    filter.after = page.next;
    let page = reader
        .list_request(&files, &filter, 1_000, || false)
        .await
        .unwrap();
    assert_eq!((page.records, page.next), (older.records, None));
}

#[tokio::test]
async fn a_search_that_has_enough_opens_no_older_files() {
    let many = of_one_id(hour_of_records(50, 1_000));
    let memory = forty_hours().with_records(fresh(50, 0), &many);
    let calls = memory.calls.clone();
    let (reader, files) = memory.reader();
    let filter = RecordFilter {
        webhook_id: Some("msg_same".into()),
        ..RecordFilter::default()
    };
    take_reads(&calls);
    assert_eq!(
        reader
            .list_request(&files, &filter, 10, || true)
            .await
            .unwrap()
            .records
            .len(),
        10
    );
    let oldest = fresh(0, 0);
    assert!(calls.take().iter().all(|call| call.key != oldest));
}

#[tokio::test]
async fn payloads_are_read_where_they_are_asked_for() {
    let memory = MemoryLog::default().with_records(fresh(0, 0), &hour_of_records(0, 20));
    let calls = memory.calls.clone();
    let (reader, files) = memory.reader();
    let all = RecordFilter::default();
    let whole = reader.list_records(&files, &all, 20).await.unwrap().records;
    let (_, bytes) = take_reads(&calls);
    assert!(whole.iter().all(|record| record.payload.is_some()));
    reader.forget_footers();
    let filter = RecordFilter {
        without_payload: true,
        ..all
    };
    let listed = reader
        .list_records(&files, &filter, 20)
        .await
        .unwrap()
        .records;
    let without = whole.into_iter().map(|record| LogRecord {
        payload: None,
        ..record
    });
    assert_eq!(listed, without.collect::<Vec<_>>());
    assert!(take_reads(&calls).1 < bytes);
}

#[tokio::test]
async fn the_last_page_says_so() {
    let (reader, files) = MemoryLog::default()
        .with_records(fresh(0, 0), &hour_of_records(0, 20))
        .reader();
    let next = async |limit| {
        reader
            .list_records(&files, &RecordFilter::default(), limit)
            .await
            .unwrap()
            .next
    };
    assert_eq!((next(20).await, next(21).await), (None, None));
    assert!(next(19).await.is_some());
}

#[tokio::test]
async fn a_file_that_is_gone_is_told_from_one_that_is_damaged() {
    let memory = MemoryLog::default().with_records(fresh(0, 0), &hour_of_records(0, 5));
    let files = memory.listing();
    let reader = MemoryLog::default().reader_that_keeps(0);
    assert!(
        reader
            .list_records(&files, &RecordFilter::default(), 5)
            .await
            .unwrap_err()
            .is_gone()
    );
}

async fn all_pages(
    reader: &MemoryReader,
    files: &[LogFile],
    mut filter: RecordFilter,
    limit: usize,
) -> Vec<LogRecord> {
    let mut records = Vec::new();
    loop {
        let page = reader.list_records(files, &filter, limit).await.unwrap();
        assert!(page.records.len() <= limit);
        records.extend(page.records);
        filter.after = page.next;
        if filter.after.is_none() {
            return without_duplicates(records);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_list_is_as_a_walk_over_all_records(
        records in any_records(80),
        limit in 1_usize..9,
        topic in proptest::option::of("[ab]"),
        event_type in proptest::option::of("[tu]"),
        result in proptest::option::of(proptest::sample::select(LogResult::ALL)),
    ) {
        let (one, other) = records.split_at(records.len() / 2);
        let memory = MemoryLog::default()
            .with(fresh(0, 1), posthaste_delivery_log::write_file(one, rows(9)).unwrap())
            .with(fresh(0, 2), posthaste_delivery_log::write_file(other, rows(9)).unwrap());
        let (reader, files) = memory.reader();
        let filter = RecordFilter { topic, event_type, result, ..RecordFilter::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let listed = runtime.block_on(all_pages(&reader, &files, filter.clone(), limit));
        prop_assert_eq!(listed, in_order(records.into_iter().filter(|it| filter.matches(it)).collect()));
    }
}
