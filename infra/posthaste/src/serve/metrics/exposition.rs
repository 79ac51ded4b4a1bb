//! Prometheus texts of several recorders as one: a family of series has one header, and its samples
//! stand together. <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>

use std::collections::BTreeMap;

use bytes::Bytes;

/// Size after which a piece of the text is over, in bytes: a page is sent piece by piece.
const PIECE_BYTES: usize = 64 * 1024;

/// A family: its header lines, and its samples.
#[derive(Default)]
struct Family<'a> {
    header: Vec<&'a str>,
    samples: Vec<&'a str>,
}

/// A text in pieces.
#[derive(Default)]
struct Pieces {
    whole: Vec<Bytes>,
    last: String,
}

/// Puts texts together, families and samples in order.
pub(super) fn merge(texts: &[String]) -> Vec<Bytes> {
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    for text in texts {
        let mut name = "";
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(of) = header_of(line) {
                name = of;
                let header = &mut families.entry(name).or_default().header;
                if !header.contains(&line) {
                    header.push(line);
                }
            } else {
                families.entry(name).or_default().samples.push(line);
            }
        }
    }
    let mut pieces = Pieces::default();
    for Family { header, samples } in families
        .into_values()
        .filter(|family| !family.samples.is_empty())
    {
        for line in header.iter().chain(&samples) {
            pieces.push(line);
        }
        pieces.push("");
    }
    pieces.end()
}

impl Pieces {
    fn push(&mut self, line: &str) {
        self.last.push_str(line);
        self.last.push('\n');
        if self.last.len() >= PIECE_BYTES {
            self.whole.push(std::mem::take(&mut self.last).into());
        }
    }

    fn end(mut self) -> Vec<Bytes> {
        if !self.last.is_empty() {
            self.whole.push(self.last.into());
        }
        self.whole
    }
}

/// The family that a header line is of; `None` for a sample.
fn header_of(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("# TYPE ")
        .or_else(|| line.strip_prefix("# HELP "))?;
    rest.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_of_several_texts_has_one_header() {
        let texts = [
            "# TYPE b counter\nb{t=\"1\"} 1\nb{t=\"2\"} 2\n\n# TYPE a gauge\na 3\n\n",
            "# TYPE b counter\nb{t=\"3\"} 4\n\n",
            "# TYPE c counter\n",
        ];
        let merged = merge(&texts.map(str::to_owned));
        assert_eq!(
            merged,
            [
                "# TYPE a gauge\na 3\n\n# TYPE b counter\nb{t=\"1\"} 1\nb{t=\"2\"} 2\nb{t=\"3\"} 4\n\n"
            ]
        );
    }

    #[test]
    fn long_text_comes_in_pieces_that_end_with_lines() {
        let samples: Vec<_> = (0..10_000).map(|n| format!("a{{n=\"{n}\"}} 1")).collect();
        let text = format!("# TYPE a counter\n{}\n", samples.join("\n"));
        let pieces = merge(std::slice::from_ref(&text));
        assert!(pieces.len() > 1);
        assert!(
            pieces
                .iter()
                .all(|it| it.ends_with(b"\n") && it.len() < PIECE_BYTES + 100)
        );
        assert_eq!(pieces.concat(), format!("{text}\n").into_bytes());
    }
}
