//! Secrets that an endpoint echoes: the places in its answer where one stands, however the answer
//! writes it.
//!
//! The answer is compared after the escapes of JSON, URLs and HTML have been undone, one inside the
//! other too, since each library escapes other characters. A secret that the endpoint transformed,
//! such as by a hash, is not recognised.

mod escapes;

use std::ops::Range;

use self::escapes::{DecodedLayer, EscapeStyle};

/// Shortest text that is looked for, in bytes: `1` or `on` tells nothing and is everywhere.
const SECRET_BYTES_MIN: usize = 4;

/// Shortest word of a secret that is looked for by itself, in bytes.
const WORD_BYTES_MIN: usize = 8;

/// Most escapes that are undone one after the other: a URL in a JSON text in a JSON text.
const DEPTH_MAX: usize = 3;

/// Most bytes that are decoded for one answer, over all orders of escapes. An answer of 64 KiB that
/// is full of them takes some milliseconds.
const DECODED_BYTES_MAX: usize = 1 << 20;

/// Prefixes of signing secrets, which a library may take off.
const PREFIXES: [&str; 2] = ["whsec_", "whsk_"];

/// Whether a text is all that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextExtent {
    /// Nothing follows it.
    Whole,
    /// More may follow: the beginning of a secret at its end is the secret.
    Cut,
}

/// A text with `mask` in the place of each of these secrets, of each longer word of one (`Bearer
/// …`), and of a signing secret without its prefix.
pub fn mask_secrets(text: &str, secrets: &[&str], extent: TextExtent, mask: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    for range in secret_ranges(text, secrets, extent) {
        clean.push_str(&text[from..range.start]);
        clean.push_str(mask);
        from = range.end;
    }
    clean.push_str(&text[from..]);
    clean
}

/// The places of secrets in a text, in order and apart.
pub(crate) fn secret_ranges(text: &str, secrets: &[&str], extent: TextExtent) -> Vec<Range<usize>> {
    let needles = texts_to_find(secrets);
    if needles.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for layer in decoded_layers(text) {
        for needle in &needles {
            layer.find_all(needle.as_bytes(), |place| found.push(place));
            if extent == TextExtent::Cut {
                found.extend(layer.find_cut(needle.as_bytes(), SECRET_BYTES_MIN));
            }
        }
    }
    let on_boundaries = found
        .into_iter()
        .map(|place| text.floor_char_boundary(place.start)..text.ceil_char_boundary(place.end));
    merge_overlapping(on_boundaries.collect())
}

/// The texts to look for.
fn texts_to_find<'s>(secrets: &[&'s str]) -> Vec<&'s str> {
    let words = secrets.iter().flat_map(|secret| secret.split_whitespace());
    let words = words.filter(|word| word.len() >= WORD_BYTES_MIN);
    let unprefixed = secrets.iter().flat_map(|secret| {
        PREFIXES
            .iter()
            .filter_map(|prefix| secret.strip_prefix(prefix))
    });
    let mut needles: Vec<_> = secrets
        .iter()
        .copied()
        .chain(words)
        .chain(unprefixed)
        .filter(|text| text.len() >= SECRET_BYTES_MIN)
        .collect();
    needles.sort_unstable();
    needles.dedup();
    needles
}

/// The text as it is, and with each order of escapes undone that changes it.
fn decoded_layers(text: &str) -> Vec<DecodedLayer<'_>> {
    let mut layers = vec![DecodedLayer::new(text)];
    let mut from = 0;
    let mut bytes = 0;
    for _ in 0..DEPTH_MAX {
        let to = layers.len();
        for at in from..to {
            for escapes in EscapeStyle::ALL {
                if bytes > DECODED_BYTES_MAX {
                    return layers;
                }
                if let Some(undone) = layers[at].undo_escapes(escapes) {
                    bytes += layers[at].len();
                    layers.push(undone);
                }
            }
        }
        from = to;
    }
    layers
}

/// The same places without overlaps.
fn merge_overlapping(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_unstable_by_key(|place| place.start);
    let mut apart: Vec<Range<usize>> = Vec::new();
    for place in places {
        match apart.last_mut() {
            Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
            _ => apart.push(place),
        }
    }
    apart
}

#[cfg(test)]
mod tests;
