//! An object of a bucket, and answers with its bytes.

use std::ops::RangeInclusive;

use bytes::Bytes;
use http::StatusCode;
use posthaste_core::model::Timestamp;

use super::super::answer::Answer;
use super::error::Error;

const CONTENT_TYPE: &str = "binary/octet-stream";

/// An object.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) bytes: Bytes,
    pub(super) etag: String,
    pub(super) modified_at: Timestamp,
}

impl Stored {
    pub(super) fn whole(&self) -> Answer {
        Answer::new(StatusCode::OK).body(CONTENT_TYPE, self.bytes.clone())
    }

    /// As many of the bytes as there are; an error if there are none.
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html>
    pub(super) fn part(&self, range: &RangeInclusive<usize>) -> Result<Answer, Error> {
        let first = *range.start();
        let length = self.bytes.len();
        if first >= length {
            return Err(Error::invalid_range(length));
        }
        let last = (*range.end()).min(length - 1);
        let answer = Answer::new(StatusCode::PARTIAL_CONTENT)
            .header("content-range", format!("bytes {first}-{last}/{length}"));
        Ok(answer.body(CONTENT_TYPE, self.bytes.slice(first..=last)))
    }
}
