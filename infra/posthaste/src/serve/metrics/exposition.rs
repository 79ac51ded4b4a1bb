//! Prometheus texts of several recorders as one: a family of series has one header, and its samples
//! stand together. <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>

use std::collections::BTreeMap;

/// A family: its header lines, and its samples.
#[derive(Default)]
struct Family {
    header: Vec<String>,
    samples: Vec<String>,
}

/// Puts texts together, families and samples in order.
pub(super) fn merge(texts: impl Iterator<Item = String>) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for text in texts {
        let mut name = String::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(of) = header_of(line) {
                of.clone_into(&mut name);
                let header = &mut families.entry(name.clone()).or_default().header;
                if !header.iter().any(|known| known == line) {
                    header.push(line.to_owned());
                }
            } else {
                families
                    .entry(name.clone())
                    .or_default()
                    .samples
                    .push(line.to_owned());
            }
        }
    }
    let mut merged = String::new();
    for Family { header, samples } in families
        .into_values()
        .filter(|family| !family.samples.is_empty())
    {
        for line in header.iter().chain(&samples) {
            merged.push_str(line);
            merged.push('\n');
        }
        merged.push('\n');
    }
    merged
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
        let merged = merge(texts.into_iter().map(str::to_owned));
        assert_eq!(
            merged,
            "# TYPE a gauge\na 3\n\n# TYPE b counter\nb{t=\"1\"} 1\nb{t=\"2\"} 2\nb{t=\"3\"} 4\n\n"
        );
    }
}
