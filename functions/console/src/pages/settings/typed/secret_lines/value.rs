//! The value of a secret member, as it is shown.

use super::member::{QUOTES, folded, is_member};

/// The value in the example of a new subscription's settings.
const EXAMPLE: &str = "Bearer ...";

/// The longest mask, in bytes.
const MASK_BYTES_MAX: usize = 40;

/// The words of a member without a value.
const NO_VALUES: [&str; 2] = ["null", "~"];

/// The text in the place of a secret.
const HIDDEN: &str = "\"\"";

/// The rest of a line that begins with a secret, as it is shown.
pub(super) struct HiddenValue {
    pub(super) shown: String,
    /// Whether a secret was cut.
    pub(super) is_cut: bool,
    /// Whether there are masks, and nothing was cut.
    pub(super) is_mask: bool,
    /// The place of the member that follows masks, to go on from.
    pub(super) next_at: Option<usize>,
    /// Brackets that it opens, less those that it closes.
    pub(super) depth: isize,
}

/// The rest of a line after the name of a secret member.
pub(super) fn hide_value(rest: &str) -> HiddenValue {
    let open_end = open_length(rest);
    let (open, secret) = rest.split_at(open_end);
    let is_mask = open.contains(['(', '.']);
    let depth = count_depth(open);
    if secret.is_empty() || NO_VALUES.contains(&secret.trim_end()) {
        return HiddenValue {
            shown: rest.to_owned(),
            is_cut: false,
            is_mask,
            next_at: None,
            depth,
        };
    }
    if depth <= 0 && is_mask && open.trim_end().ends_with(',') && is_member(secret) {
        return HiddenValue {
            shown: String::new(),
            is_cut: false,
            is_mask,
            next_at: Some(open_end),
            depth,
        };
    }
    if secret.starts_with('#') && !open.ends_with(QUOTES) {
        return HiddenValue {
            shown: open.trim_end().to_owned(),
            is_cut: false,
            is_mask,
            next_at: None,
            depth,
        };
    }
    cut_secret(open, secret)
}

impl HiddenValue {
    /// A rest of which nothing is shown.
    pub(super) fn all_of(rest: &str) -> Self {
        cut_secret(" ", rest)
    }
}

fn cut_secret(open: &str, secret: &str) -> HiddenValue {
    let is_close = |it: char| "]},".contains(it) || it.is_whitespace();
    let close = &secret[secret.trim_end_matches(is_close).len()..];
    let open = open.trim_end_matches(QUOTES);
    let flag = if says_secret(secret) {
        ", isSecret: true"
    } else {
        ""
    };
    let shown = format!("{open}{HIDDEN}{flag}{close}");
    HiddenValue {
        is_cut: true,
        is_mask: false,
        next_at: None,
        depth: count_depth(open) + count_depth(close),
        shown,
    }
}

/// Whether the header of a value that is cut is said to be secret in the same line. That is not
/// lost with the value.
fn says_secret(cut: &str) -> bool {
    folded(cut).contains("issecrettrue")
}

/// The length of what may be shown at the beginning: blanks, brackets, quotes and masks.
fn open_length(rest: &str) -> usize {
    let mut at = 0;
    while let Some(sign) = rest[at..].chars().next() {
        if rest[at..].starts_with(EXAMPLE) {
            at += EXAMPLE.len();
        } else if sign == '(' {
            match mask_length(&rest[at..]) {
                Some(length) => at += length,
                None => break,
            }
        } else if sign.is_whitespace() || "[]{},\"'".contains(sign) {
            at += sign.len_utf8();
        } else {
            break;
        }
    }
    at
}

/// The length of a mask, `(masked)` or with the tag of its secret.
fn mask_length(text: &str) -> Option<usize> {
    let tag = text.strip_prefix("(masked")?;
    let end = tag.find(')')?;
    let is_tag = tag[..end]
        .chars()
        .all(|it| it.is_ascii_hexdigit() || it == ':');
    let length = text.len() - tag.len() + end + 1;
    (is_tag && length <= MASK_BYTES_MAX).then_some(length)
}

fn count_depth(text: &str) -> isize {
    text.chars()
        .map(|it| match it {
            '[' | '{' => 1,
            ']' | '}' => -1,
            _ => 0,
        })
        .sum()
}
