//! A text of settings without its secrets, whatever the text is: YAML, JSON or neither. It is gone
//! through line by line, comments too, and nothing is parsed. More is hidden than need be where it
//! is not clear what belongs to a secret.

mod member;
#[cfg(test)]
mod tests;
mod value;

use self::member::{SettingsLine, find_member, folded, is_member};
use self::value::{HiddenValue, hide_value};

/// The beginnings of signing secrets.
const SECRET_STARTS: [&str; 2] = ["whsec_", "whsk_"];

/// The ends of the names of a topic's keys.
const KEY_ENDS: [&str; 4] = ["key", "keys", "key1", "key2"];

/// The member that makes a header's value a secret, folded.
const IS_SECRET: &str = "issecret";

/// The member that every advanced filter has, folded. Its `key` and `value` are no secrets.
const OPERATOR: &str = "operatortype";

/// Lines before and after a member that may be of the same filter.
const FILTER_LINES_MAX: usize = 4;

/// Longest filter in one line, in bytes. The secrets of a longer one are looked for in it.
const FILTER_BYTES_MAX: usize = 1_000;

/// A text that is shown without its secrets.
struct SecretFilter<'a> {
    lines: Vec<SettingsLine<'a>>,
    /// Whether a member `value` may be a secret.
    hides_values: bool,
}

/// A member whose secret may go on in the lines below it.
#[derive(Clone, Copy)]
struct OpenMember {
    /// The characters before its line's content.
    column: usize,
    /// Whether its value began in its own line, so that the lines below are no values of their own.
    is_inline: bool,
    /// Whether a line that is not indented may still be of the value.
    may_break_indent: bool,
    /// Brackets that are open.
    depth: isize,
}

/// A line without its secrets.
struct ShownLine {
    text: String,
    open: Option<OpenMember>,
}

/// The text without its secrets. Each is replaced by an empty text, which is a mistake when it is
/// saved so. Masks stay, because they are none.
pub(super) fn hide_secrets(text: &str) -> String {
    let filter = SecretFilter {
        lines: text.split('\n').map(SettingsLine::parse).collect(),
        hides_values: folded(text).contains(IS_SECRET),
    };
    let mut open: Option<OpenMember> = None;
    let mut shown = Vec::with_capacity(filter.lines.len());
    for (number, line) in filter.lines.iter().enumerate() {
        let next = match open {
            Some(member) if member.goes_on_in(line) => member.hide_below(line),
            _ => filter.hide_members(number),
        };
        open = next.open;
        shown.push(cut_tokens(&next.text));
    }
    shown.join("\n")
}

impl SecretFilter<'_> {
    /// The line of this number without the values of its secret members.
    fn hide_members(&self, number: usize) -> ShownLine {
        let line = &self.lines[number];
        let content = line.content;
        let mut from = 0;
        while let Some(member) = find_member(content, from) {
            from = member.value_at;
            if !self.is_secret(number, &member.name, from) {
                continue;
            }
            let value = hide_value(&content[from..]);
            if let Some(next_at) = value.next_at {
                from += next_at;
                continue;
            }
            return ShownLine {
                text: format!("{}{}{}", line.lead, &content[..from], value.shown),
                open: OpenMember::begin(line, member.is_first, &value),
            };
        }
        ShownLine {
            text: line.whole(),
            open: None,
        }
    }

    /// Whether the member with this folded name has a secret. Its value begins at `value_at`.
    fn is_secret(&self, number: usize, name: &str, value_at: usize) -> bool {
        if name == IS_SECRET {
            return false;
        }
        if name.contains("secret") {
            return true;
        }
        let is_value = self.hides_values && name.ends_with("value");
        let is_key = is_key_name(name);
        let may_be_of_filter = name == "value" || name == "key";
        (is_value || is_key) && !(may_be_of_filter && self.is_of_filter(number, value_at))
    }

    /// Whether a member is of an advanced filter.
    fn is_of_filter(&self, number: usize, value_at: usize) -> bool {
        let line = &self.lines[number];
        if !line.content[..value_at].contains(['{', ',']) {
            return self.has_operator_beside(number);
        }
        let begin = line.content[..value_at].rfind('{');
        begin.is_some_and(|begin| has_operator(&line.content[begin + 1..]))
    }

    /// Whether the item that the line's first member is of has an operator, each member in a line.
    fn has_operator_beside(&self, number: usize) -> bool {
        let line = &self.lines[number];
        let before = self.lines[..number].iter().rev().take(FILTER_LINES_MAX);
        let mut is_whole = line.begins_item();
        for it in before {
            if is_whole || it.column() != line.column() {
                break;
            }
            if it.is_named(OPERATOR) {
                return true;
            }
            is_whole = it.begins_item();
        }
        let after = self.lines[number + 1..].iter().take(FILTER_LINES_MAX);
        after
            .take_while(|it| it.column() == line.column() && !it.begins_item())
            .any(|it| it.is_named(OPERATOR))
    }
}

impl OpenMember {
    /// The member of a line, if its value may go on below.
    fn begin(line: &SettingsLine<'_>, is_first: bool, value: &HiddenValue) -> Option<Self> {
        let is_closed = value.depth <= 0 && value.shown.trim_end().ends_with([']', '}', ',']);
        let may_break_indent = !is_closed && !value.is_mask;
        let goes_on = is_first || may_break_indent || value.depth > 0;
        goes_on.then_some(Self {
            column: line.column(),
            is_inline: value.is_cut,
            may_break_indent,
            depth: value.depth.max(0),
        })
    }

    /// Whether a line is still of the value.
    fn goes_on_in(self, line: &SettingsLine<'_>) -> bool {
        if self.depth > 0 || line.is_blank() || line.indent > self.column {
            return true;
        }
        if line.begins_item() && line.indent == self.column {
            return true;
        }
        let is_structure = line.is_comment() || line.is_closing() || is_member(line.content);
        self.may_break_indent && !line.begins_item() && !is_structure
    }

    /// A line of the value without what it says. The name of a key in it stays.
    fn hide_below(self, line: &SettingsLine<'_>) -> ShownLine {
        if self.is_inline && self.depth == 0 {
            return ShownLine {
                text: String::new(),
                open: Some(self),
            };
        }
        let member = find_member(line.content, 0)
            .filter(|it| is_member(line.content) && is_key_name(&it.name));
        let value_at = member.map_or(0, |member| member.value_at);
        let (name, rest) = line.content.split_at(value_at);
        let value = hide_value(rest);
        let shown = match value.next_at {
            Some(_) => HiddenValue::all_of(rest).shown,
            None => value.shown,
        };
        ShownLine {
            text: format!("{}{name}{shown}", line.lead),
            open: Some(Self {
                depth: (self.depth + value.depth).max(0),
                ..self
            }),
        }
    }
}

fn is_key_name(name: &str) -> bool {
    KEY_ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether an item in braces has an operator. Its line goes on after it.
fn has_operator(item: &str) -> bool {
    let mut signs = item.bytes().take(FILTER_BYTES_MAX);
    let end = match signs.position(|it| it == b'{' || it == b'}') {
        Some(end) => end,
        None if item.len() <= FILTER_BYTES_MAX => item.len(),
        None => return false,
    };
    let mut members = item[..end].split(',');
    members.any(|it| {
        it.split_once(':')
            .is_some_and(|(name, _)| folded(name) == OPERATOR)
    })
}

/// A line without what looks like a signing secret.
fn cut_tokens(line: &str) -> String {
    let folded = line.to_ascii_lowercase();
    let mut shown = String::with_capacity(line.len());
    let mut from = 0;
    while let Some(start) = next_token(&folded[from..]) {
        let start = from + start;
        shown.push_str(&line[from..start]);
        let length = line[start..].find(|it: char| !is_of_token(it));
        from = length.map_or(line.len(), |length| start + length);
    }
    shown.push_str(&line[from..]);
    shown
}

fn next_token(folded: &str) -> Option<usize> {
    let starts = SECRET_STARTS.iter();
    starts.filter_map(|start| folded.find(start)).min()
}

/// Whether a character may be of a signing secret: those of every Base64, and of its escapes.
fn is_of_token(it: char) -> bool {
    it.is_ascii_alphanumeric() || "_-+/=%\\".contains(it)
}
