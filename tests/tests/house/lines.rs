//! Width of lines. rustfmt looks at Rust's code only; this test looks at comments, strings and
//! other languages too. Raw strings and links cannot be broken, so they may be wider.

use std::path::Path;

use crate::workspace::{root, tracked};

/// Columns of a line of code or comment: `max_width` of `rustfmt.toml`.
const COLUMNS_MAX: usize = 110;

/// Endings of files that are read. A file without one is a script.
const CODE: [&str; 6] = ["rs", "py", "mjs", "ts", "toml", "yaml"];

/// The dashboard of the template is one JSON text, to its end.
const DASHBOARD: &str = "# ---- Dashboard";

/// The beginnings of a raw string, of one line or of several.
const RAW: [&str; 2] = ["r#\"", "= r\""];

/// The ends of a raw string of several lines.
const RAW_ENDS: [&str; 2] = ["\"#", "\";"];

#[test]
fn no_line_of_code_or_comment_is_too_wide() {
    let wide: Vec<_> = tracked()
        .iter()
        .filter(|path| is_code(path))
        .flat_map(|path| wide_lines(path))
        .collect();
    assert!(
        wide.is_empty(),
        "{} lines of more than {COLUMNS_MAX} columns:\n{}",
        wide.len(),
        wide.join("\n")
    );
}

fn is_code(path: &str) -> bool {
    let ending = Path::new(path).extension().and_then(|it| it.to_str());
    !path.contains("/fixtures/") && ending.is_none_or(|it| CODE.contains(&it))
}

fn wide_lines(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(path)).expect("a tracked file of text");
    let lines = text.lines().take_while(|line| !line.contains(DASHBOARD));
    let (mut wide, mut is_raw) = (Vec::new(), false);
    for (number, line) in (1..).zip(lines) {
        let (was_raw, opens) = (is_raw, RAW.iter().any(|it| line.contains(it)));
        is_raw = (is_raw || opens) && !RAW_ENDS.iter().any(|it| line.contains(it));
        let is_exempt = was_raw || opens || is_link(line);
        if !is_exempt && line.chars().count() > COLUMNS_MAX {
            wide.push(format!("{path}:{number}: {line}"));
        }
    }
    wide
}

/// A link of a comment in a line of its own.
fn is_link(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches(['/', '!', '#']).trim();
    line.starts_with('<') && line.ends_with('>')
}
