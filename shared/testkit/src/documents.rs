//! Documents that users write, made from their schema and spoiled in each way that one rule is for.

use serde_json::{Value, json};

/// A document with every member that its schema has.
#[derive(Debug)]
pub struct SampleDocument(SampleValue);

/// A document with one fault.
#[derive(Debug)]
pub struct SpoiledDocument {
    /// The path of the member at fault.
    pub member: String,
    /// The fault that the member was given.
    pub fault: DocumentFault,
    /// The text, as JSON.
    pub text: String,
}

/// A fault of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentFault {
    /// An object's values as a list, in its place.
    ListForObject,
    /// A value of another kind.
    OtherKind,
    /// The member twice, its name escaped the second time.
    Twice,
    /// Null for a member that must be there.
    NullForRequired,
}

/// A value of each kind.
#[derive(Debug)]
enum SampleValue {
    Object(Vec<(String, bool, Self)>),
    Map(Box<Self>),
    List(Box<Self>),
    Scalar(Value),
    /// A value of any kind.
    Any(Value),
}

/// The one change while a document is written.
#[derive(Clone, Copy)]
enum DocumentChange<'a> {
    None,
    Fault(&'a str, DocumentFault),
    Null(&'a str),
    LeftOut(&'a str),
}

impl SampleDocument {
    /// A document of a schema. `whole` has the parts that references lead to.
    pub fn of_schema(whole: &Value, schema: &Value) -> Self {
        Self(SampleValue::of_schema(whole, schema))
    }

    /// The document itself. Every member of its objects is optional but those that are named.
    pub fn of_example(example: &Value, required: &[&str]) -> Self {
        Self(SampleValue::of_value(example, required))
    }

    /// The text, as JSON.
    pub fn text(&self) -> String {
        self.written(DocumentChange::None)
    }

    /// The document with each fault of each of its members.
    pub fn spoiled(&self) -> Vec<SpoiledDocument> {
        let mut faults = Vec::new();
        self.0.faults("", &mut faults);
        let spoiled = |(member, fault): (String, DocumentFault)| {
            let text = self.written(DocumentChange::Fault(&member, fault));
            SpoiledDocument {
                member,
                fault,
                text,
            }
        };
        faults.into_iter().map(spoiled).collect()
    }

    /// Each optional member, with the document in which it is null and the one that lacks it.
    pub fn optional(&self) -> Vec<(String, [String; 2])> {
        let mut members = Vec::new();
        self.0.optional("", &mut members);
        let both = |member: String| {
            let texts = [
                self.written(DocumentChange::Null(&member)),
                self.written(DocumentChange::LeftOut(&member)),
            ];
            (member, texts)
        };
        members.into_iter().map(both).collect()
    }

    fn written(&self, change: DocumentChange<'_>) -> String {
        let mut text = String::new();
        self.0.write("", change, &mut text);
        text
    }
}

impl SampleValue {
    fn of_schema(whole: &Value, schema: &Value) -> Self {
        if let Some(reference) = schema["$ref"].as_str() {
            let part = whole.pointer(&reference[1..]).expect("a part");
            return Self::of_schema(whole, part);
        }
        for several in ["oneOf", "anyOf", "allOf"] {
            let mut variants = schema[several].as_array().into_iter().flatten();
            if let Some(variant) = variants.find(|variant| variant["type"] != "null") {
                return Self::of_schema(whole, variant);
            }
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null"),
            kind => Some(kind),
        };
        let example = schema
            .get("example")
            .or_else(|| schema["enum"].get(0))
            .cloned();
        match kind.and_then(Value::as_str) {
            Some("object") => Self::of_object(whole, schema),
            Some("array") => Self::List(Box::new(Self::of_schema(whole, &schema["items"]))),
            Some("boolean") => Self::Scalar(true.into()),
            Some("integer" | "number") => Self::Scalar(example.unwrap_or(json!(1))),
            Some(_) if schema["format"] == "date-time" => {
                Self::Scalar("2026-11-21T10:00:00Z".into())
            }
            Some(_) => Self::Scalar(example.unwrap_or("a".into())),
            None => Self::Any(example.unwrap_or(json!(1))),
        }
    }

    fn of_object(whole: &Value, schema: &Value) -> Self {
        let Some(properties) = schema["properties"].as_object() else {
            let value = Self::of_schema(whole, &schema["additionalProperties"]);
            return Self::Map(Box::new(value));
        };
        let required = schema["required"].as_array().into_iter().flatten();
        let required: Vec<_> = required.filter_map(Value::as_str).collect();
        let member = |(name, schema): (&String, &Value)| {
            let is_required = required.contains(&name.as_str());
            (name.clone(), is_required, Self::of_schema(whole, schema))
        };
        Self::Object(properties.iter().map(member).collect())
    }

    fn of_value(value: &Value, required: &[&str]) -> Self {
        match value {
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    let is_required = required.contains(&name.as_str());
                    (name.clone(), is_required, Self::of_value(value, &[]))
                };
                Self::Object(members.iter().map(member).collect())
            }
            Value::Array(items) => Self::List(Box::new(Self::of_value(&items[0], &[]))),
            Value::Null => Self::Any(Value::Null),
            scalar => Self::Scalar(scalar.clone()),
        }
    }

    fn below(&self, path: &str) -> Vec<(String, &Self)> {
        match self {
            Self::Object(members) => members
                .iter()
                .map(|(name, _, value)| (join(path, name), value))
                .collect(),
            Self::Map(value) => vec![(join(path, "a"), value)],
            Self::List(item) => vec![(format!("{path}[0]"), item)],
            Self::Scalar(_) | Self::Any(_) => Vec::new(),
        }
    }

    fn faults(&self, path: &str, found: &mut Vec<(String, DocumentFault)>) {
        let mut add = |fault| found.push((path.to_owned(), fault));
        match self {
            Self::Object(_) | Self::Map(_) => {
                add(DocumentFault::ListForObject);
                add(DocumentFault::OtherKind);
            }
            Self::List(_) | Self::Scalar(_) => add(DocumentFault::OtherKind),
            Self::Any(_) => {}
        }
        if let Self::Object(members) = self {
            for (name, is_required, _) in members {
                let member = join(path, name);
                found.push((member.clone(), DocumentFault::Twice));
                if *is_required {
                    found.push((member, DocumentFault::NullForRequired));
                }
            }
        }
        if let Self::Map(_) = self {
            found.push((join(path, "a"), DocumentFault::Twice));
        }
        for (path, value) in self.below(path) {
            value.faults(&path, found);
        }
    }

    fn optional(&self, path: &str, found: &mut Vec<String>) {
        if let Self::Object(members) = self {
            let optional = members.iter().filter(|(_, is_required, _)| !is_required);
            found.extend(optional.map(|(name, _, _)| join(path, name)));
        }
        for (path, value) in self.below(path) {
            value.optional(&path, found);
        }
    }

    fn write(&self, path: &str, change: DocumentChange<'_>, text: &mut String) {
        match change {
            DocumentChange::Null(at)
            | DocumentChange::Fault(at, DocumentFault::NullForRequired)
                if at == path =>
            {
                text.push_str("null");
            }
            DocumentChange::Fault(at, DocumentFault::OtherKind) if at == path => {
                text.push_str(match self {
                    Self::Object(_) | Self::Map(_) => "7",
                    Self::List(_) | Self::Scalar(_) | Self::Any(_) => "{}",
                });
            }
            DocumentChange::Fault(at, DocumentFault::ListForObject) if at == path => {
                let values = self.below(path).into_iter();
                let values = values.map(|(path, value)| value.text_at(&path));
                text.extend(["[", &values.collect::<Vec<_>>().join(","), "]"]);
            }
            _ => self.write_whole(path, change, text),
        }
    }

    fn text_at(&self, path: &str) -> String {
        let mut text = String::new();
        self.write(path, DocumentChange::None, &mut text);
        text
    }

    fn write_whole(&self, path: &str, change: DocumentChange<'_>, text: &mut String) {
        match self {
            Self::Object(_) | Self::Map(_) => {
                let mut members = Vec::new();
                for (path, value) in self.below(path) {
                    if matches!(change, DocumentChange::LeftOut(at) if at == path) {
                        continue;
                    }
                    let name = path.rsplit('.').next().unwrap_or_default();
                    let mut member = format!("{}:", Value::from(name));
                    value.write(&path, change, &mut member);
                    members.push(member);
                    if matches!(change, DocumentChange::Fault(at, DocumentFault::Twice) if at == path)
                    {
                        members.push(format!("{}:{}", escaped(name), value.text_at(&path)));
                    }
                }
                text.extend(["{", &members.join(","), "}"]);
            }
            Self::List(item) => {
                text.push('[');
                item.write(&format!("{path}[0]"), change, text);
                text.push(']');
            }
            Self::Scalar(value) | Self::Any(value) => text.push_str(&value.to_string()),
        }
    }
}

/// A name as a JSON string in which every character is escaped.
fn escaped(name: &str) -> String {
    let escaped = name.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    format!("\"{}\"", escaped.collect::<String>())
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
