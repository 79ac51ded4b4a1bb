//! Fields of every log line in the workspace, read from its sources: none has a name that the
//! writer itself uses, and none is the `Debug` text of a Rust value, which readers of the log
//! cannot use as data.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use posthaste_log::RESERVED;
use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};

/// The macros of `tracing` that write a line.
const MACROS: [&str; 6] = ["trace", "debug", "info", "warn", "error", "event"];

/// The folders of the workspace in which there is Rust.
const FOLDERS: [&str; 4] = ["shared", "functions", "infra", "tests"];

/// A field of a line, and where it stands.
#[derive(Debug, PartialEq, Eq)]
struct FoundField {
    name: String,
    line: usize,
    /// Whether its value is written by `Debug`.
    is_debug: bool,
}

/// The fields of all lines that are logged in a source text.
fn fields_in(source: &str) -> Vec<FoundField> {
    let mut found = Vec::new();
    let tokens = TokenStream::from_str(source).expect("the text is Rust");
    walk(&tokens.into_iter().collect::<Vec<_>>(), &mut found);
    found
}

fn walk(tokens: &[TokenTree], found: &mut Vec<FoundField>) {
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            continue;
        };
        let is_call = at >= 2 && is_punct(&tokens[at - 1], '!') && is_macro(&tokens[at - 2]);
        let inner: Vec<_> = group.stream().into_iter().collect();
        if is_call {
            arguments(&inner, found);
        }
        walk(&inner, found);
    }
}

fn is_macro(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(ident) if MACROS.iter().any(|name| ident == name))
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

/// The fields among the arguments of one call. They end where the text begins, because its own
/// arguments follow.
fn arguments(tokens: &[TokenTree], found: &mut Vec<FoundField>) {
    for argument in tokens.split(|token| is_punct(token, ',')) {
        match argument {
            [] => {}
            [TokenTree::Group(fields)] if fields.delimiter() == Delimiter::Brace => {
                braced(fields, found);
            }
            [TokenTree::Literal(text)] => return found.extend(debug_text(text)),
            _ => found.extend(field(argument)),
        }
    }
}

fn braced(fields: &Group, found: &mut Vec<FoundField>) {
    arguments(&fields.stream().into_iter().collect::<Vec<_>>(), found);
}

/// The field of an argument: `name`, `%name`, `?name`, `name = value` or `"name" = value`, with
/// dots or without.
fn field(argument: &[TokenTree]) -> Option<FoundField> {
    let named = match argument {
        [sigil, rest @ ..] if is_punct(sigil, '%') || is_punct(sigil, '?') => rest,
        _ => argument,
    };
    let is_of_name = |token: &&TokenTree| match token {
        TokenTree::Ident(_) | TokenTree::Literal(_) => true,
        token => is_punct(token, '.'),
    };
    let name: Vec<_> = named.iter().take_while(is_of_name).collect();
    // Anything but a value is no field: `target: "x"`, or a level with its path.
    if name.is_empty()
        || named
            .get(name.len())
            .is_some_and(|token| !is_punct(token, '='))
    {
        return None;
    }
    let text: String = name
        .iter()
        .map(|token| token.to_string().trim_matches('"').to_owned())
        .collect();
    let value = named.get(name.len() + 1..).unwrap_or_default();
    let is_debug = [argument, value].into_iter().any(begins_debug) || names_debug(value);
    Some(FoundField {
        name: text,
        line: name[0].span().start().line,
        is_debug,
    })
}

/// Whether it is `?value`.
fn begins_debug(value: &[TokenTree]) -> bool {
    value.first().is_some_and(|token| is_punct(token, '?'))
}

/// Whether `debug` of `tracing` makes a value, as in `debug(value)` and `value.map(field::debug)`.
fn names_debug(value: &[TokenTree]) -> bool {
    value.iter().any(|token| match token {
        TokenTree::Ident(name) => name == "debug",
        TokenTree::Group(group) => names_debug(&group.stream().into_iter().collect::<Vec<_>>()),
        _ => false,
    })
}

/// The text of a line, if it holds a value that is written by `Debug`.
fn debug_text(text: &Literal) -> Option<FoundField> {
    let name = text.to_string();
    let is_debug = name.contains(":?}") || name.contains(":#?}");
    is_debug.then(|| FoundField {
        name,
        line: text.span().start().line,
        is_debug,
    })
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir()
            && path
                .file_name()
                .is_none_or(|name| name != "target" && name != "node_modules")
        {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The fields of all lines of the workspace, each with its file. The writer's own tests are left
/// out, because they try any name and value.
fn all_fields() -> Vec<(PathBuf, FoundField)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in FOLDERS {
        sources(&root.join(folder), &mut files);
    }
    files.retain(|file| !file.ends_with("shared/log/src/lib.rs"));
    let fields = |file: PathBuf| {
        let found = fields_in(&fs::read_to_string(&file).expect("a source can be read"));
        found.into_iter().map(move |found| (file.clone(), found))
    };
    files.into_iter().flat_map(fields).collect()
}

/// The places of the fields that are to be found.
fn places(is_meant: impl Fn(&FoundField) -> bool) -> Vec<String> {
    let place = |(file, found): (PathBuf, FoundField)| {
        is_meant(&found).then(|| format!("{}:{}: {}", file.display(), found.line, found.name))
    };
    all_fields().into_iter().filter_map(place).collect()
}

/// Fields of log lines have none of the names that the writer gives itself.
#[test]
fn lines_have_no_field_under_a_reserved_name() {
    let refused = places(|found| RESERVED.contains(&found.name.as_str()));
    assert!(
        refused.is_empty(),
        "name these fields otherwise, as in `link = %target`: {refused:#?}"
    );
    // The search finds what there is.
    for name in [
        "link",
        "topic",
        "subscription",
        "error",
        "outcome",
        "status",
    ] {
        assert!(!places(|found| found.name == name).is_empty(), "{name}");
    }
}

/// Fields of log lines are numbers, or words by `Display`.
#[test]
fn lines_have_no_debug_text_of_a_value() {
    let refused = places(|found| found.is_debug);
    assert!(
        refused.is_empty(),
        "give these fields data: a number with its unit in the name, or a word by Display: {refused:#?}"
    );
}

#[test]
fn values_by_debug_are_found_in_every_form() {
    let check = |call: &str, expected: &[&str]| {
        let found = fields_in(&format!("fn f() {{ {call}; }}"));
        let names: Vec<_> = found
            .into_iter()
            .filter(|it| it.is_debug)
            .map(|it| it.name)
            .collect();
        assert_eq!(names, expected, "{call}");
    };
    check(
        r#"tracing::info!(?a, b = ?c.d, e = debug(f), g = h.map(field::debug), "t")"#,
        &["a", "b", "e", "g"],
    );
    check(
        r#"tracing::info!(a = tracing::field::debug(&b), %c, d, e = ok?, "text")"#,
        &["a"],
    );
    check(r#"tracing::info!(a, "text {b:?}")"#, &["\"text {b:?}\""]);
}

#[test]
fn fields_are_found_in_every_form() {
    let check = |call: &str, expected: &[&str]| {
        let found: Vec<_> = fields_in(&format!("fn f() {{ {call}; }}"))
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(found, expected, "{call}");
    };
    check(
        r#"tracing::info!(%a, ?b, c, d = 1, e = %x.y(1, 2), f.g = ?h, "text {} {i}", j, k = 2)"#,
        &["a", "b", "c", "d", "e", "f.g"],
    );
    check(
        r#"tracing::warn!(target: "a::b", x = error as &dyn std::error::Error, "text")"#,
        &["x"],
    );
    check(
        r#"tracing::event!(tracing::Level::INFO, { a, %b }, "text")"#,
        &["a", "b"],
    );
    check(
        r#"let _ = async { if x { error!("type" = 1) } }"#,
        &["type"],
    );
    check(
        r#"tracing::info!("text only, {a}"); println!("{b}", b = c)"#,
        &[],
    );
    check(
        r#"let _ = "tracing::info!(a)" /* tracing::info!(a) */"#,
        &[],
    );
}
