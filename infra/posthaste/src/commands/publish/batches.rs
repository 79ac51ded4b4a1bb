//! Events in requests. The borders of a request depend only on the events before it, so that a
//! second run over the same file makes the same requests with the same names. Only a pause of a
//! pipe ends a request early, and then its name says so.

use std::io::BufRead;
use std::sync::Arc;

use posthaste_core::model::REQUEST_BYTES_MAX;
use serde_json::Value;

use super::content_type::{EVENT, EVENT_BATCH, JSON};
use super::events::{EventReader, EventsError, InputEvent};

/// Bytes of an array besides its events.
const BRACKETS: usize = 2;

/// The events of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventBatch {
    /// Number of its first event in the file, from 0. The batch is named after it.
    pub(super) first: u64,
    /// The line in which each event begins, from 1.
    pub(super) lines: Vec<u64>,
    /// The request's content type.
    pub(super) content_type: Arc<str>,
    /// The request's body.
    pub(super) body: Vec<u8>,
    /// True if a pause ended the batch. The same events without that pause make another batch,
    /// which must not have the same name.
    pub(super) is_cut: bool,
}

/// The next item of a source of events.
#[derive(Debug)]
pub(super) enum SourceItem {
    /// An event.
    Event(InputEvent),
    /// A pause: the events that were read should not wait for more.
    Pause,
    /// Nothing more.
    End,
}

/// A source of events.
pub(super) trait EventSource {
    /// The next item.
    fn next(&mut self) -> Result<SourceItem, EventsError>;
}

impl<R: BufRead> EventSource for EventReader<R> {
    fn next(&mut self) -> Result<SourceItem, EventsError> {
        Ok(Self::next(self)?.map_or(SourceItem::End, SourceItem::Event))
    }
}

impl<S: EventSource + ?Sized> EventSource for Box<S> {
    fn next(&mut self) -> Result<SourceItem, EventsError> {
        (**self).next()
    }
}

/// Settings of batches.
#[derive(Debug, Clone)]
pub(super) struct PackingSettings {
    /// Most events in one request.
    pub(super) events_max: u32,
    /// Number of events to skip.
    pub(super) from: u64,
    /// The content type of every request; otherwise it follows from the first event.
    pub(super) content_type: Option<String>,
}

/// The batches of an input.
#[derive(Debug)]
pub(super) struct EventBatches<S> {
    source: S,
    packing: PackingSettings,
    /// Number of events that were taken from the source.
    count: u64,
    types: Option<ContentTypes>,
    /// The first event of the next batch.
    next: Option<InputEvent>,
}

/// The content types of a schema.
#[derive(Debug, Clone)]
struct ContentTypes {
    one: Arc<str>,
    array: Arc<str>,
}

impl EventBatch {
    /// Number of its events.
    pub(super) fn event_count(&self) -> u32 {
        // `--batch` bounds it.
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// Name in a run: the same for the same events, and a different one for others.
    pub(super) fn name(&self, run: &str) -> String {
        let first = self.first;
        if self.is_cut {
            format!("{run}-{first}-{}", self.lines.len())
        } else {
            format!("{run}-{first}")
        }
    }

    /// The number of the event after its last.
    pub(super) fn end_index(&self) -> u64 {
        self.first + self.lines.len() as u64
    }
}

impl<S: EventSource> EventBatches<S> {
    /// The batches of these events.
    pub(super) fn new(source: S, packing: PackingSettings) -> Self {
        Self {
            source,
            packing,
            count: 0,
            types: None,
            next: None,
        }
    }

    /// The next batch; `None` at the end. A batch is published as a whole, so that a broken event
    /// keeps back the events before it in its batch.
    pub(super) fn next(&mut self) -> Result<Option<EventBatch>, EventsError> {
        let (Some(types), Some(event)) = (self.skip_to_start()?, self.next_event()?) else {
            return Ok(None);
        };
        let first = self.count - 1;
        if event.json.len() + BRACKETS > REQUEST_BYTES_MAX {
            // Without brackets it may fit. If not, the server says so.
            let body = event.json.into_bytes();
            let lines = vec![event.line];
            let content_type = types.one;
            return Ok(Some(EventBatch {
                first,
                lines,
                content_type,
                body,
                is_cut: false,
            }));
        }
        let lines = vec![event.line];
        let content_type = types.array;
        let mut batch = EventBatch {
            first,
            lines,
            content_type,
            body: vec![b'['],
            is_cut: false,
        };
        batch.body.extend_from_slice(event.json.as_bytes());
        while batch.event_count() < self.packing.events_max {
            let event = match self.take_item()? {
                SourceItem::Event(event) => event,
                next => {
                    batch.is_cut = matches!(next, SourceItem::Pause);
                    break;
                }
            };
            // The comma, and the closing bracket.
            if batch.body.len() + event.json.len() + BRACKETS > REQUEST_BYTES_MAX {
                self.next = Some(event);
                break;
            }
            batch.body.push(b',');
            batch.body.extend_from_slice(event.json.as_bytes());
            batch.lines.push(event.line);
        }
        batch.body.push(b']');
        Ok(Some(batch))
    }

    /// Before the first batch: reads the file's first event, and skips the events that are to be
    /// left out.
    fn skip_to_start(&mut self) -> Result<Option<ContentTypes>, EventsError> {
        if self.types.is_none() {
            let from = self.packing.from;
            while let Some(event) = self.next_event()? {
                let types = || {
                    ContentTypes::for_first_event(&event.json, self.packing.content_type.as_deref())
                };
                self.types.get_or_insert_with(types);
                if self.count > from {
                    self.next = Some(event);
                    break;
                }
            }
            if self.count < from {
                return Err(EventsError::TooFew {
                    from,
                    events: self.count,
                });
            }
        }
        Ok(self.types.clone())
    }

    /// The next event, however long it takes; `None` at the end.
    fn next_event(&mut self) -> Result<Option<InputEvent>, EventsError> {
        loop {
            match self.take_item()? {
                SourceItem::Event(event) => return Ok(Some(event)),
                SourceItem::Pause => {}
                SourceItem::End => return Ok(None),
            }
        }
    }

    fn take_item(&mut self) -> Result<SourceItem, EventsError> {
        if let Some(event) = self.next.take() {
            return Ok(SourceItem::Event(event));
        }
        let next = self.source.next()?;
        self.count += u64::from(matches!(next, SourceItem::Event(_)));
        Ok(next)
    }
}

impl ContentTypes {
    /// The wanted content type. Otherwise only CloudEvents have one of their own.
    fn for_first_event(first: &str, wanted: Option<&str>) -> Self {
        let is_cloud_event = || {
            serde_json::from_str::<Value>(first)
                .is_ok_and(|event| event.get("specversion").is_some())
        };
        let (one, array) = match wanted {
            Some(wanted) => (wanted, wanted),
            None if is_cloud_event() => (EVENT, EVENT_BATCH),
            None => (JSON, JSON),
        };
        Self {
            one: one.into(),
            array: array.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(input: &str, events_max: u32, from: u64) -> Vec<EventBatch> {
        let packing = PackingSettings {
            events_max,
            from,
            content_type: None,
        };
        let mut batches = EventBatches::new(EventReader::new(input.as_bytes()), packing);
        std::iter::from_fn(|| batches.next().unwrap()).collect()
    }

    fn check(input: &str, events_max: u32, from: u64, expected: &[&str]) {
        let shown = |batch: &EventBatch| {
            format!(
                "{} {:?} {}",
                batch.first,
                batch.lines,
                String::from_utf8_lossy(&batch.body)
            )
        };
        let found: Vec<_> = batches(input, events_max, from).iter().map(shown).collect();
        assert_eq!(found, expected, "{input} by {events_max} from {from}");
    }

    #[test]
    fn events_are_put_together_by_their_number() {
        let lines = "{\"a\":1}\n{\"a\":2}\n\n{\"a\":3}\n";
        check(
            lines,
            2,
            0,
            &["0 [1, 2] [{\"a\":1},{\"a\":2}]", "2 [4] [{\"a\":3}]"],
        );
        check(
            lines,
            100,
            0,
            &["0 [1, 2, 4] [{\"a\":1},{\"a\":2},{\"a\":3}]"],
        );
        check(lines, 2, 2, &["2 [4] [{\"a\":3}]"]);
        check(lines, 2, 3, &[]);
        check("[]", 2, 0, &[]);
    }

    #[test]
    fn whoever_goes_on_at_a_batch_gets_the_same_batches() {
        let line = |n: usize| format!("{{\"n\":{n},\"x\":\"{}\"}}\n", "x".repeat(n * 700));
        let input = (0..100).map(line).collect::<Vec<_>>().concat();
        let all = batches(&input, 30, 0);
        assert!(
            all.iter()
                .all(|batch| batch.body.len() <= REQUEST_BYTES_MAX)
                && all.len() > 4
        );
        for (n, batch) in all.iter().enumerate() {
            assert_eq!(batches(&input, 30, batch.first), all[n..], "{n}");
        }
    }

    #[test]
    fn requests_are_filled_and_oversized_events_go_alone() {
        let event = |bytes: usize| {
            format!(
                "{{\"specversion\":\"1.0\",\"x\":\"{}\"}}",
                "x".repeat(bytes - 28)
            )
        };
        let check = |bytes: &[usize], expected: &[(usize, &str)]| {
            let input: String = bytes.iter().map(|bytes| event(*bytes)).collect();
            let found = batches(&input, 100, 0);
            let found: Vec<_> = found
                .iter()
                .map(|batch| (batch.body.len(), &*batch.content_type))
                .collect();
            assert_eq!(found, expected, "{bytes:?}");
        };
        check(
            &[REQUEST_BYTES_MAX / 2 - 1, REQUEST_BYTES_MAX / 2 - 2],
            &[(REQUEST_BYTES_MAX, EVENT_BATCH)],
        );
        check(
            &[REQUEST_BYTES_MAX / 2 - 1, REQUEST_BYTES_MAX / 2 - 1],
            &[(500_001, EVENT_BATCH); 2],
        );
        check(
            &[REQUEST_BYTES_MAX - 2],
            &[(REQUEST_BYTES_MAX, EVENT_BATCH)],
        );
        let fits = (REQUEST_BYTES_MAX - 1, EVENT);
        let never = (2 * REQUEST_BYTES_MAX, EVENT);
        check(
            &[100, fits.0, never.0, 100],
            &[(102, EVENT_BATCH), fits, never, (102, EVENT_BATCH)],
        );
    }

    #[test]
    fn the_content_type_follows_the_file_s_first_event() {
        let check = |input: &str, from: u64, wanted: Option<&str>, expected: &str| {
            let packing = PackingSettings {
                events_max: 1,
                from,
                content_type: wanted.map(str::to_owned),
            };
            let batch = EventBatches::new(EventReader::new(input.as_bytes()), packing)
                .next()
                .unwrap()
                .unwrap();
            assert_eq!(&*batch.content_type, expected, "{input}");
        };
        check("{\"specversion\":\"1.0\"}{\"a\":1}", 1, None, EVENT_BATCH);
        check("{\"id\":\"1\",\"eventType\":\"t\"}", 0, None, JSON);
        check("{\"a\":1}{\"specversion\":\"1.0\"}", 1, None, JSON);
        check(
            "{\"specversion\":\"1.0\"}",
            0,
            Some("application/json"),
            "application/json",
        );
    }

    /// Events with pauses between them.
    struct Pausing(Vec<Option<u64>>);

    impl EventSource for Pausing {
        fn next(&mut self) -> Result<SourceItem, EventsError> {
            let event = |line| {
                SourceItem::Event(InputEvent {
                    json: "{}".to_owned(),
                    line,
                })
            };
            let next = (!self.0.is_empty()).then(|| self.0.remove(0));
            Ok(next.map_or(SourceItem::End, |next| {
                next.map_or(SourceItem::Pause, event)
            }))
        }
    }

    #[test]
    fn a_pause_ends_a_batch_that_has_begun_and_its_name_says_so() {
        let check = |events: &[Option<u64>], from, expected: &[&str]| {
            let packing = PackingSettings {
                events_max: 3,
                from,
                content_type: None,
            };
            let mut batches = EventBatches::new(Pausing(events.to_vec()), packing);
            let found: Vec<_> = std::iter::from_fn(|| batches.next().unwrap())
                .map(|batch| format!("{} {:?}", batch.name("r"), batch.lines))
                .collect();
            assert_eq!(found, expected, "{events:?}");
        };
        let pause = None;
        let line = Some;
        check(&[pause, pause], 0, &[]);
        check(
            &[pause, line(1), line(2), pause, pause, line(3)],
            0,
            &["r-0-2 [1, 2]", "r-2 [3]"],
        );
        check(
            &[line(1), line(2), line(3), pause, line(4), pause],
            0,
            &["r-0 [1, 2, 3]", "r-3-1 [4]"],
        );
        check(&[line(1), pause, line(2), pause], 1, &["r-1-1 [2]"]);
    }

    /// Events before a broken one in its batch are not published; a skip beyond the end is an
    /// error.
    #[test]
    fn broken_batch_or_too_few_events_are_an_error() {
        let packing = |from| PackingSettings {
            events_max: 2,
            from,
            content_type: None,
        };
        let mut broken = EventBatches::new(EventReader::new(&b"{}{}{}x"[..]), packing(0));
        assert_eq!(broken.next().unwrap().unwrap().first, 0);
        assert!(matches!(
            broken.next(),
            Err(EventsError::Unexpected { line: 1, .. })
        ));
        let short = EventBatches::new(EventReader::new(&b"{}{}"[..]), packing(3)).next();
        assert!(matches!(
            short,
            Err(EventsError::TooFew { from: 3, events: 2 })
        ));
    }
}
