//! Gathering: the dead letters of one subscription, in objects of a bounded size. A message is never split.

use bytes::Bytes;
use posthaste_core::dead_letter::Gathered;
use posthaste_core::limits::DEAD_LETTER_OBJECT_BYTES_PREFERRED;

use crate::Letter;

/// An object to be written and the messages it came from.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) json: Bytes,
    pub(crate) events: usize,
    pub(crate) letters: Vec<Letter>,
}

/// Gathers letters of one subscription.
pub(crate) fn gather(letters: Vec<Letter>) -> Vec<Object> {
    let mut objects = Vec::new();
    let (mut gathered, mut inside) = (Gathered::default(), Vec::new());
    for letter in letters {
        if gathered.bytes() >= DEAD_LETTER_OBJECT_BYTES_PREFERRED {
            objects.push(finish(std::mem::take(&mut gathered), std::mem::take(&mut inside)));
        }
        letter.records.iter().for_each(|record| gathered.push(record));
        inside.push(letter);
    }
    if gathered.count() > 0 {
        objects.push(finish(gathered, inside));
    }
    objects
}

fn finish(gathered: Gathered, letters: Vec<Letter>) -> Object {
    Object { events: gathered.count(), json: gathered.finish(), letters }
}
