//! Texts as YAML.

/// The most columns of a line of text.
const COLUMNS_MAX: usize = 118;

/// A line with so many more spaces before it, unless it is empty.
pub(crate) fn indented_line(line: &str, indent: usize) -> String {
    if line.is_empty() {
        String::new()
    } else {
        format!("{:indent$}{line}", "")
    }
}

/// A line without its first spaces.
pub(crate) fn dedented_line(line: &str, indent: usize) -> &str {
    let (spaces, rest) = line.split_at(indent.min(line.len()));
    assert!(
        spaces.trim().is_empty(),
        "indented by less than {indent}: {line}"
    );
    rest
}

/// A value as a scalar of one line, in quotes where YAML would not read it as this text.
pub(crate) fn scalar(value: &str) -> String {
    let is_word = value
        .chars()
        .all(|it| it.is_ascii_alphanumeric() || "._/-".contains(it));
    let is_other = value.parse::<f64>().is_ok() || ["on", "off", "true", "false"].contains(&value);
    if is_word && !is_other && !value.is_empty() {
        value.to_owned()
    } else {
        quoted(value)
    }
}

/// A value in double quotes.
pub(crate) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A member whose value is a sentence: on its line if it fits, otherwise folded.
pub(crate) fn sentence(key: &str, text: &str, indent: usize) -> Vec<String> {
    let line = format!("{:indent$}{key}: {text}", "");
    if line.len() <= COLUMNS_MAX && !text.contains(": ") && !text.contains(" #") {
        return vec![line];
    }
    let mut lines = vec![format!("{:indent$}{key}: >-", "")];
    let indent = indent + 2;
    for line in wrapped(text, COLUMNS_MAX - indent) {
        lines.push(indented_line(&line, indent));
    }
    lines
}

/// A text in lines of at most so many columns.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("one line at least");
        if !line.is_empty() && line.len() + 1 + word.len() > columns {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
