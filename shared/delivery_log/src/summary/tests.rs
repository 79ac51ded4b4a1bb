//! The filters of a day: they never deny an id that they have, and are seldom wrong about others.

use parquet::bloom_filter::Sbbf;
use posthaste_core::model::Timestamp;
use proptest::prelude::*;

use super::*;

/// 2026-03-07T00:00:00Z.
const DAY_MS: u64 = 1_772_841_600_000;

const HOUR_MS: u64 = 3_600_000;

fn hour(place: u64) -> LogHour {
    LogHour::containing(Timestamp::from_millis(DAY_MS + place * HOUR_MS))
}

fn day() -> LogDay {
    LogDay::containing(hour(0))
}

fn ids(prefix: &str, count: usize) -> Vec<u64> {
    (0..count)
        .map(|n| id_hash(&format!("{prefix}-{n}")))
        .collect()
}

/// The row of an id, read as a search reads it.
fn row(bytes: &Bytes, hash: u64) -> Option<SummaryRow> {
    let rows = rows_for_bytes(bytes.len() as u64)?;
    let at = row_for_hash(hash, rows);
    let row = SummaryRow::parse(bytes.slice(at * ROW_BYTES..(at + 1) * ROW_BYTES), day())?;
    row.is_at(at, rows).then_some(row)
}

fn may_have(bytes: &Bytes, place: u64, hash: u64) -> bool {
    row(bytes, hash).unwrap().may_have(hour(place), hash)
}

proptest! {
    /// Hours of any sizes, set in any order, some of them again with other ids: each id of the last
    /// setting may be in its hour.
    #[test]
    fn filter_never_denies_an_id_that_it_has(
        settings in proptest::collection::vec((0_u64..24, 0_usize..900), 1..12),
        parsed: bool,
    ) {
        let mut summary = DaySummary::new(day());
        let mut last = std::collections::BTreeMap::new();
        for (turn, (place, count)) in settings.into_iter().enumerate() {
            let ids = ids(&format!("event-{turn}"), count);
            summary.set_hour(hour(place), turn as u64 + 1, Some(&ids));
            last.insert(place, (turn as u64 + 1, ids));
            if parsed {
                summary = DaySummary::parse(day(), &summary.render()).unwrap();
            }
        }
        let bytes = summary.render();
        for (place, (files, ids)) in last {
            for id in ids {
                let row = row(&bytes, id).unwrap();
                prop_assert!(row.may_have(hour(place), id));
                prop_assert_eq!(row.hour_digest(hour(place)), files);
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2 * ROW_BYTES)) {
        let bytes = Bytes::from(bytes);
        prop_assert!(DaySummary::parse(day(), &bytes).is_none());
        prop_assert!(SummaryRow::parse(bytes, day()).is_none());
    }
}

/// 4,096 ids fill the 256 rows of a summary.
#[test]
fn full_filter_is_seldom_wrong() {
    let mut summary = DaySummary::new(day());
    summary.set_hour(hour(3), 1, Some(&ids("event", 4_096)));
    let bytes = summary.render();
    assert_eq!(bytes.len(), 256 * ROW_BYTES);
    let wrong = ids("other", 200_000)
        .into_iter()
        .filter(|id| may_have(&bytes, 3, *id))
        .count();
    let per_million = u32::try_from(wrong * 5).unwrap();
    assert!(
        (1..=FALSE_POSITIVES_PER_MILLION_MAX).contains(&per_million),
        "{per_million} in a million"
    );
}

/// The hours beside it have no ids, and an id of one hour is in no other.
#[test]
fn hours_do_not_mix() {
    let mut summary = DaySummary::new(day());
    let id = id_hash("event-1");
    summary.set_hour(hour(7), 1, Some(&[id]));
    summary.set_hour(hour(8), 2, Some(&ids("other", 3)));
    let bytes = summary.render();
    let found: Vec<u64> = (0..24)
        .filter(|place| may_have(&bytes, *place, id))
        .collect();
    assert_eq!(found, [7]);
    let row = row(&bytes, id).unwrap();
    assert_eq!(
        [7, 8, 9].map(|place| row.hour_digest(hour(place))),
        [1, 2, 0]
    );
}

/// A small hour that was there before a large one is as seldom wrong as it was.
#[test]
fn summary_that_grows_keeps_what_it_says() {
    let mut summary = DaySummary::new(day());
    let small = ids("small", 200);
    summary.set_hour(hour(1), 1, Some(&small));
    summary.set_hour(hour(2), 2, Some(&ids("large", 10_000)));
    let bytes = summary.render();
    assert_eq!(bytes.len(), 1_024 * ROW_BYTES);
    assert!(small.iter().all(|id| may_have(&bytes, 1, *id)));
    let others = ids("other", 20_000);
    let wrong = others.iter().filter(|id| may_have(&bytes, 1, **id)).count();
    assert!(wrong <= 40, "{wrong}");
}

#[test]
fn hour_without_known_ids_may_have_every_one() {
    let mut summary = DaySummary::new(day());
    summary.set_hour(hour(1), 9, None);
    let bytes = summary.render();
    assert!(ids("any", 100).iter().all(|id| may_have(&bytes, 1, *id)));
    assert!(!may_have(&bytes, 2, id_hash("any-1")));
}

#[test]
fn hour_with_too_many_ids_may_have_every_one() {
    let mut summary = DaySummary::new(day());
    summary.set_hour(hour(1), 9, Some(&vec![1; IDS_MAX + 1]));
    assert!(may_have(&summary.render(), 1, id_hash("any")));
}

#[test]
fn damaged_row_says_nothing() {
    let mut summary = DaySummary::new(day());
    summary.set_hour(hour(1), 9, Some(&ids("event", 5)));
    let bytes = summary.render();
    let id = id_hash("event-1");
    let whole = bytes.to_vec();
    let at = row_for_hash(id, ROWS_MIN) * ROW_BYTES;
    for byte in at..at + ROW_BYTES {
        let mut damaged = whole.clone();
        damaged[byte] ^= 4;
        let damaged = Bytes::from(damaged);
        assert!(row(&damaged, id).is_none(), "byte {byte}");
        assert!(DaySummary::parse(day(), &damaged).is_none(), "byte {byte}");
    }
    let other_day = LogDay::containing(hour(24));
    assert!(SummaryRow::parse(bytes.slice(at..at + ROW_BYTES), other_day).is_none());
}

/// A summary that was replaced by a larger one between a listing and a read.
#[test]
fn row_of_another_size_is_not_taken() {
    let mut summary = DaySummary::new(day());
    summary.set_hour(hour(1), 9, Some(&ids("event", 5_000)));
    let bytes = summary.render();
    let wrong = SummaryRow::parse(bytes.slice(3 * ROW_BYTES..4 * ROW_BYTES), day()).unwrap();
    assert!(wrong.is_at(3, 512) && !wrong.is_at(3, ROWS_MIN) && !wrong.is_at(4, 512));
}

#[test]
fn only_whole_summaries_have_rows() {
    let bytes = |rows: usize| (rows * ROW_BYTES) as u64;
    assert_eq!(rows_for_bytes(bytes(16)), Some(16));
    assert_eq!(rows_for_bytes(bytes(ROWS_MAX)), Some(ROWS_MAX));
    for odd in [
        0,
        1,
        bytes(8),
        bytes(17),
        bytes(16) + 1,
        bytes(2 * ROWS_MAX),
        u64::MAX,
    ] {
        assert_eq!(rows_for_bytes(odd), None, "{odd}");
    }
}

#[test]
fn files_of_an_hour_have_a_digest_of_their_own() {
    let file = |name: &str, size| {
        let key = format!("date=2026-03-07/hour=03/07-{name}.parquet");
        LogFile::new(key, size).unwrap()
    };
    let one = file("a", 1);
    let other = file("b", 2);
    let both = files_digest([&one, &other]);
    assert_eq!(both, files_digest([&other, &one]));
    assert_eq!(files_digest([]), 0);
    for changed in [
        files_digest([&one]),
        files_digest([&other]),
        files_digest([&one, &file("b", 3)]),
        files_digest([&one, &file("c", 2)]),
    ] {
        assert!(changed != both && changed != 0);
    }
}

/// The bits are those of Parquet's filters.
#[test]
fn blocks_are_those_of_parquet() {
    for n in 0..1_000 {
        let id = format!("event-{n}");
        let words = block_bits(id_hash(&id)).map(u32::to_le_bytes);
        let block = words.as_flattened();
        assert!(Sbbf::new(block).check(id.as_str()), "{id}");
        assert_eq!(block.iter().map(|byte| byte.count_ones()).sum::<u32>(), 8);
    }
}
