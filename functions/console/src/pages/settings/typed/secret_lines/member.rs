//! Lines of settings, and the names of members in them.

pub(super) const QUOTES: [char; 2] = ['"', '\''];

/// A line, taken apart.
pub(super) struct SettingsLine<'a> {
    /// The beginning of the line: blanks, signs of comments, and dashes of list items.
    pub(super) lead: &'a str,
    pub(super) content: &'a str,
    /// The characters before the first dash, or else before the content.
    pub(super) indent: usize,
}

/// A member in a line.
pub(super) struct FoundMember {
    /// The name of the member, folded.
    pub(super) name: String,
    /// Whether nothing stands before it.
    pub(super) is_first: bool,
    /// The place after its colon.
    pub(super) value_at: usize,
}

impl<'a> SettingsLine<'a> {
    pub(super) fn parse(line: &'a str) -> Self {
        let mut content = line.trim_start_matches(is_before_content);
        let indent = line.len() - content.len();
        while let Some(rest) = content.strip_prefix('-') {
            if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
                break;
            }
            content = rest.trim_start_matches(is_before_content);
        }
        Self {
            lead: &line[..line.len() - content.len()],
            content,
            indent,
        }
    }

    pub(super) fn whole(&self) -> String {
        format!("{}{}", self.lead, self.content)
    }

    /// The characters before the content.
    pub(super) const fn column(&self) -> usize {
        self.lead.len()
    }

    pub(super) fn is_blank(&self) -> bool {
        self.content.is_empty() && !self.begins_item()
    }

    pub(super) fn begins_item(&self) -> bool {
        self.lead.contains('-')
    }

    pub(super) fn is_comment(&self) -> bool {
        self.lead.contains('#')
    }

    /// Whether it only closes brackets.
    pub(super) fn is_closing(&self) -> bool {
        let mut signs = self.content.chars();
        signs.all(|it| "]},".contains(it) || it.is_whitespace())
    }

    /// Whether it begins with the member of this folded name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        find_member(self.content, 0).is_some_and(|it| it.is_first && it.name == name)
    }
}

/// The first member in a line's content, from a place on.
pub(super) fn find_member(content: &str, from: usize) -> Option<FoundMember> {
    let colon = from + content[from..].find(':')?;
    let before = &content[from..colon];
    let name = before.trim_start_matches(|it| !is_of_name(it));
    let name = name.rsplit(|it| !is_of_name(it)).next().unwrap_or(name);
    Some(FoundMember {
        name: folded(name),
        is_first: from == 0 && !before.contains(|it| !is_of_name(it)),
        value_at: colon + 1,
    })
}

/// Whether a content begins with a member as YAML and JSON write it.
pub(super) fn is_member(content: &str) -> bool {
    let Some((written, value)) = content.split_once(':') else {
        return false;
    };
    let written = written.trim_end();
    let mut signs = QUOTES.iter();
    let in_quotes = signs.find_map(|it| written.strip_prefix(*it)?.strip_suffix(*it));
    let name = in_quotes.unwrap_or(written);
    let is_name = name
        .chars()
        .all(|it| is_of_name(it) && !QUOTES.contains(&it));
    let is_apart = value.is_empty() || value.starts_with(char::is_whitespace);
    is_name && !name.is_empty() && (is_apart || in_quotes.is_some())
}

/// A name as it is compared: without case, quotes, blanks and other signs.
pub(super) fn folded(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|it| it.to_ascii_lowercase()).collect()
}

fn is_before_content(it: char) -> bool {
    it.is_whitespace() || it == '#'
}

fn is_of_name(it: char) -> bool {
    it.is_alphanumeric() || "_-'\" \t".contains(it)
}
