//! Events in requests. The borders of a request depend only on the events before it, so that a
//! second run over the same file makes the same requests with the same names. Only a pause of a
//! pipe ends a request early, and then its name says so.

use std::io::BufRead;
use std::iter::Fuse;

use posthaste_core::model::REQUEST_BYTES_MAX;

use crate::content_type::{EVENT, EVENT_BATCH, content_type_of};
use crate::events::{EventPlace, EventReader, EventsError, InputEvent};

/// The events of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventBatch {
    /// Number of its first event in the file, from 0. The batch is named after it.
    pub first: u64,
    /// The line in which each event begins, from 1.
    pub lines: Vec<u64>,
    /// The request's content type.
    pub content_type: String,
    /// The request's body.
    pub body: Vec<u8>,
    /// True if a pause ended the batch. The same events without that pause make another batch,
    /// which must not have the same name.
    pub is_cut: bool,
}

/// An item of a source of events, which ends with its last event.
#[derive(Debug)]
pub enum SourceItem {
    /// An event.
    Event(InputEvent),
    /// A pause: the events that were read should not wait for more.
    Pause,
}

impl<R: BufRead> Iterator for EventReader<R> {
    type Item = Result<SourceItem, EventsError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.read_event().transpose()?;
        Some(next.map(SourceItem::Event))
    }
}

/// Settings of batches.
#[derive(Debug, Clone)]
pub struct PackingSettings {
    /// Most events in one request.
    pub events_max: u32,
    /// Number of events to skip.
    pub from: u64,
    /// The content type of every request; otherwise it follows from the first event.
    pub content_type: Option<String>,
}

/// The batches of an input.
#[derive(Debug)]
pub struct EventBatches<S> {
    /// A terminal that is read again after its end would ask for more.
    source: Fuse<S>,
    packing: PackingSettings,
    /// Number of events that were skipped or are in batches: that of the next batch's first event.
    first: u64,
    /// The content type of the input's first event, once it was read.
    first_type: &'static str,
    /// The first event of the next batch, if it was read.
    next: Option<InputEvent>,
}

impl EventBatch {
    /// Number of its events.
    pub fn event_count(&self) -> u32 {
        // `--batch` bounds it.
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// Name in a run: the same for the same events, and a different one for others.
    pub fn name(&self, run: &str) -> String {
        let first = self.first;
        if self.is_cut {
            format!("{run}-{first}-{}", self.lines.len())
        } else {
            format!("{run}-{first}")
        }
    }

    /// The number of the event after its last.
    pub(crate) fn end_index(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    /// The place of its event with this index.
    pub(crate) fn place_of(&self, index: u64) -> Option<EventPlace> {
        let line = *self.lines.get(usize::try_from(index).ok()?)?;
        let index = self.first + index;
        Some(EventPlace { index, line })
    }

    /// True if it fits with this event, a comma or bracket before it, and the closing bracket.
    fn has_room_for(&self, event: &InputEvent) -> bool {
        self.body.len() + event.json.len() + 2 <= REQUEST_BYTES_MAX
    }

    fn add_event(&mut self, event: &InputEvent) {
        self.body
            .push(if self.lines.is_empty() { b'[' } else { b',' });
        self.body.extend_from_slice(event.json.as_bytes());
        self.lines.push(event.line);
    }
}

impl<S: Iterator<Item = Result<SourceItem, EventsError>>> EventBatches<S> {
    /// The batches of these events.
    pub fn new(source: S, packing: PackingSettings) -> Self {
        Self {
            source: source.fuse(),
            packing,
            first: 0,
            first_type: "",
            next: None,
        }
    }

    /// The next batch; `None` at the end. A batch is published as a whole, so that a broken event
    /// keeps back the events before it in its batch.
    pub fn next_batch(&mut self) -> Result<Option<EventBatch>, EventsError> {
        let mut batch = EventBatch::default();
        let mut is_array = true;
        while is_array && batch.event_count() < self.packing.events_max {
            match self.next_item()? {
                Some(SourceItem::Event(event)) if batch.has_room_for(&event) => {
                    batch.add_event(&event);
                }
                Some(SourceItem::Event(event)) if batch.lines.is_empty() => {
                    // Without brackets it may fit. If not, the server says so.
                    is_array = false;
                    batch.lines.push(event.line);
                    batch.body = event.json.into_bytes();
                }
                Some(SourceItem::Event(event)) => {
                    self.next = Some(event);
                    break;
                }
                Some(SourceItem::Pause) if batch.lines.is_empty() => {}
                Some(SourceItem::Pause) => {
                    batch.is_cut = true;
                    break;
                }
                None if batch.lines.is_empty() => return Ok(None),
                None => break,
            }
        }
        if is_array {
            batch.body.push(b']');
        }
        batch.content_type = self.content_type(is_array);
        batch.first = self.first;
        self.first = batch.end_index();
        Ok(Some(batch))
    }

    /// The next item after the events that are to be left out.
    fn next_item(&mut self) -> Result<Option<SourceItem>, EventsError> {
        if let Some(event) = self.next.take() {
            return Ok(Some(SourceItem::Event(event)));
        }
        let from = self.packing.from;
        loop {
            let item = self.source.next().transpose()?;
            if let Some(SourceItem::Event(event)) = &item
                && self.first_type.is_empty()
            {
                self.first_type = content_type_of(event.json.as_bytes());
            }
            match item {
                Some(SourceItem::Event(_)) if self.first < from => self.first += 1,
                None if self.first < from => {
                    let events = self.first;
                    return Err(EventsError::TooFew { from, events });
                }
                item => return Ok(item),
            }
        }
    }

    /// The wanted content type. Otherwise only CloudEvents have one of their own.
    fn content_type(&self, is_array: bool) -> String {
        match &self.packing.content_type {
            Some(wanted) => wanted.clone(),
            None if is_array && self.first_type == EVENT => EVENT_BATCH.to_owned(),
            None => self.first_type.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content_type::JSON;

    fn batches(input: &str, events_max: u32, from: u64) -> Vec<EventBatch> {
        let packing = PackingSettings {
            events_max,
            from,
            content_type: None,
        };
        let mut batches = EventBatches::new(EventReader::new(input.as_bytes()), packing);
        std::iter::from_fn(|| batches.next_batch().unwrap()).collect()
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
                .next_batch()
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

    /// Events in these lines, with pauses between them.
    fn pausing(
        lines: &[Option<u64>],
    ) -> impl Iterator<Item = Result<SourceItem, EventsError>> + use<'_> {
        lines.iter().map(|line| {
            let Some(line) = *line else {
                return Ok(SourceItem::Pause);
            };
            let json = "{}".to_owned();
            Ok(SourceItem::Event(InputEvent { json, line }))
        })
    }

    #[test]
    fn a_pause_ends_a_batch_that_has_begun_and_its_name_says_so() {
        let check = |events: &[Option<u64>], from, expected: &[&str]| {
            let packing = PackingSettings {
                events_max: 3,
                from,
                content_type: None,
            };
            let mut batches = EventBatches::new(pausing(events), packing);
            let found: Vec<_> = std::iter::from_fn(|| batches.next_batch().unwrap())
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
        assert_eq!(broken.next_batch().unwrap().unwrap().first, 0);
        assert!(matches!(
            broken.next_batch(),
            Err(EventsError::Unexpected { line: 1, .. })
        ));
        let short = EventBatches::new(EventReader::new(&b"{}{}"[..]), packing(3)).next_batch();
        assert!(matches!(
            short,
            Err(EventsError::TooFew { from: 3, events: 2 })
        ));
    }
}
