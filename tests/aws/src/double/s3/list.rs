//! `ListObjectsV2`: pages of keys, with a token that only the double can read.

use std::collections::BTreeMap;
use std::ops::Bound;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::super::answer::Answer;
use super::error::{Error, KEY_BYTES_MAX};
use super::object::Stored;
use super::xml::{CONTENT_TYPE, Xml};

/// Most keys on a page; more may be asked for, but no more are given.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
const PAGE_MAX: usize = 1000;

/// The prefix of a continuation token, before it is made opaque.
const TOKEN: &str = "after:";

const NAMESPACE: &str = " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

/// Characters that `encoding-type=url` leaves as they are.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'*')
    .remove(b'/');

/// A page that is asked for.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) prefix: String,
    start_after: Option<String>,
    token: Option<String>,
    max: usize,
    is_url_encoded: bool,
}

impl Page {
    pub(super) fn parse(query: &str) -> Result<Self, Error> {
        let pairs: Vec<(String, String)> =
            serde_urlencoded::from_str(query).map_err(|_| Error::invalid_argument("query"))?;
        let mut page = Self {
            max: PAGE_MAX,
            ..Self::default()
        };
        let mut is_second_version = false;
        for (name, value) in pairs {
            match name.as_str() {
                "list-type" => is_second_version = value == "2",
                "prefix" => page.prefix = value,
                "start-after" => page.start_after = Some(value),
                "continuation-token" => page.token = Some(value),
                "encoding-type" => page.is_url_encoded = value == "url",
                "max-keys" => {
                    page.max = value
                        .parse()
                        .map_err(|_| Error::invalid_argument("max-keys"))?;
                }
                // The SDK names the operation; S3 ignores it.
                "x-id" => {}
                other => return Err(Error::not_implemented(other)),
            }
        }
        let after = page.start_after.as_deref().unwrap_or_default();
        if page.prefix.len().max(after.len()) > KEY_BYTES_MAX {
            return Err(Error::key_too_long());
        }
        page.max = page.max.min(PAGE_MAX);
        if is_second_version {
            Ok(page)
        } else {
            Err(Error::not_implemented("ListObjects"))
        }
    }

    /// The key the page begins after. A token goes before `start-after`.
    fn after(&self) -> Result<Option<String>, Error> {
        let Some(token) = &self.token else {
            return Ok(self.start_after.clone());
        };
        let decoded = URL_SAFE_NO_PAD
            .decode(token)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let key = decoded.as_deref().and_then(|text| text.strip_prefix(TOKEN));
        key.map(|key| Some(key.to_owned()))
            .ok_or_else(|| Error::invalid_argument("continuation-token"))
    }

    fn shown(&self, text: &str) -> String {
        if self.is_url_encoded {
            utf8_percent_encode(text, PLAIN).to_string()
        } else {
            text.to_owned()
        }
    }
}

/// Answers a page of a bucket.
pub(super) fn answer(
    bucket: &str,
    page: &Page,
    objects: &BTreeMap<String, Stored>,
) -> Result<Answer, Error> {
    let after = page.after()?;
    let from = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut matching = objects
        .range::<str, _>((from, Bound::Unbounded))
        .filter(|(key, _)| key.starts_with(&page.prefix));
    let listed: Vec<_> = matching.by_ref().take(page.max).collect();
    // A page of no keys says that there are no more.
    let last = listed
        .last()
        .filter(|_| matching.next().is_some())
        .map(|(key, _)| key.as_str());
    let mut xml = Xml::begin("ListBucketResult", NAMESPACE);
    xml.text("Name", bucket);
    xml.text("Prefix", &page.shown(&page.prefix));
    xml.text("MaxKeys", &page.max.to_string());
    xml.text("KeyCount", &listed.len().to_string());
    xml.text("IsTruncated", if last.is_some() { "true" } else { "false" });
    if page.is_url_encoded {
        xml.text("EncodingType", "url");
    }
    if let Some(last) = last {
        xml.text(
            "NextContinuationToken",
            &URL_SAFE_NO_PAD.encode(format!("{TOKEN}{last}")),
        );
    }
    for (key, object) in listed {
        contents(&mut xml, &page.shown(key), object);
    }
    Ok(Answer::new(StatusCode::OK).body(CONTENT_TYPE, xml.end("ListBucketResult")))
}

fn contents(xml: &mut Xml, key: &str, object: &Stored) {
    xml.open("Contents");
    xml.text("Key", key);
    xml.text("LastModified", &object.modified_at.to_string());
    xml.text("ETag", &object.etag);
    xml.text("Size", &object.bytes.len().to_string());
    xml.text("StorageClass", "STANDARD");
    xml.close("Contents");
}
