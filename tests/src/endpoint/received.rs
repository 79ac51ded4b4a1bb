//! A request as an endpoint read it.

use std::io::{self, BufRead};
use std::time::Duration;

use serde_json::Value;

use crate::patience::now;

/// Largest body that is read.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A request as it was received.
#[derive(Debug, Clone)]
pub struct Received {
    pub method: String,
    /// The path, with the query.
    pub path: String,
    /// The headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The time at which it was read, since the epoch.
    pub at: Duration,
}

impl Received {
    /// Reads one request. `None` where the client closed the connection between two.
    pub(super) fn read(stream: &mut impl BufRead) -> io::Result<Option<Self>> {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(broken());
        };
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(broken)?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self {
            method,
            path,
            headers,
            body: Vec::new(),
            at: now(),
        };
        let bytes = request
            .header("content-length")
            .unwrap_or("0")
            .parse()
            .map_err(|_| broken())?;
        // The program knows how long its bodies are; a request in chunks would be a surprise worth
        // a failure.
        if bytes > BODY_BYTES_MAX || request.header("transfer-encoding").is_some() {
            return Err(broken());
        }
        request.body.resize(bytes, 0);
        stream.read_exact(&mut request.body)?;
        Ok(Some(request))
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body, which must be JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// The ids of the events in the body: of one, or of an array of them.
    pub fn ids(&self) -> Vec<String> {
        let id = |event: &Value| event["id"].as_str().expect("an event has an id").to_owned();
        self.events().iter().map(id).collect()
    }

    /// The events in the body: one, or an array of them.
    pub fn events(&self) -> Vec<Value> {
        match self.json() {
            Value::Array(events) => events,
            event => vec![event],
        }
    }
}
