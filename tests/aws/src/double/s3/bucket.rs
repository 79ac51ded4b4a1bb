//! A bucket: its objects, and what the caller may do.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use bytes::Bytes;
use http::StatusCode;
use posthaste_core::model::Timestamp;

use super::super::answer::Answer;
use super::super::digest::md5_of;
use super::error::Error;
use super::list::{self, Page};
use super::object::Stored;
use super::request::Condition;

/// Rights of the caller on a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    Full,
    /// Everything but list, so an absent key looks forbidden.
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html>
    WithoutList,
    /// Nothing.
    None,
}

/// All buckets, by name.
#[derive(Debug, Default)]
pub(crate) struct Buckets(BTreeMap<String, Bucket>);

/// One bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    access: Access,
    /// In the order of listings: that of the keys' UTF-8 bytes.
    objects: BTreeMap<String, Stored>,
}

impl Buckets {
    pub(crate) fn make(&mut self, name: &str, access: Access) {
        self.0.insert(
            name.to_owned(),
            Bucket {
                access,
                objects: BTreeMap::new(),
            },
        );
    }

    pub(crate) fn insert(&mut self, bucket: &str, key: &str, bytes: Bytes, now: Timestamp) {
        self.0
            .get_mut(bucket)
            .expect("the bucket was made")
            .insert(key, bytes, now);
    }

    pub(crate) fn object(&self, bucket: &str, key: &str) -> Option<Bytes> {
        self.0
            .get(bucket)?
            .objects
            .get(key)
            .map(|object| object.bytes.clone())
    }

    pub(super) fn named(&mut self, name: &str) -> Result<&mut Bucket, Error> {
        let bucket = self
            .0
            .get_mut(name)
            .ok_or_else(|| Error::no_such_bucket(name))?;
        if bucket.access == Access::None {
            Err(Error::denied())
        } else {
            Ok(bucket)
        }
    }
}

impl Bucket {
    pub(super) fn get(
        &self,
        key: &str,
        if_none_match: Option<&str>,
        range: Option<&RangeInclusive<usize>>,
    ) -> Result<Answer, Error> {
        let object = self.objects.get(key).ok_or_else(|| self.absent(key))?;
        if if_none_match == Some(&object.etag) {
            return Err(Error::not_modified(&object.etag));
        }
        let answer = range.map_or_else(|| Ok(object.whole()), |range| object.part(range))?;
        Ok(answer.header("etag", object.etag.as_str()))
    }

    pub(super) fn put(
        &mut self,
        key: &str,
        bytes: &Bytes,
        condition: Option<&Condition>,
        now: Timestamp,
    ) -> Result<Answer, Error> {
        match (condition, self.objects.get(key)) {
            (Some(Condition::IfAbsent), Some(_)) => {
                return Err(Error::precondition_failed("If-None-Match"));
            }
            (Some(Condition::IfMatch(_)), None) => return Err(self.absent(key)),
            (Some(Condition::IfMatch(etag)), Some(object)) if *etag != object.etag => {
                return Err(Error::precondition_failed("If-Match"));
            }
            _ => {}
        }
        let etag = self.insert(key, bytes.clone(), now);
        Ok(Answer::new(StatusCode::OK).header("etag", etag))
    }

    pub(super) fn delete(&mut self, key: &str) {
        self.objects.remove(key);
    }

    pub(super) fn list(&self, name: &str, page: &Page) -> Result<Answer, Error> {
        if self.access == Access::WithoutList {
            return Err(Error::denied());
        }
        list::answer(name, page, &self.objects)
    }

    fn insert(&mut self, key: &str, bytes: Bytes, modified_at: Timestamp) -> String {
        let etag = format!("\"{}\"", md5_of(&bytes));
        self.objects.insert(
            key.to_owned(),
            Stored {
                bytes,
                etag: etag.clone(),
                modified_at,
            },
        );
        etag
    }

    /// Hides that a key is absent from a caller that may not list.
    fn absent(&self, key: &str) -> Error {
        if self.access == Access::Full {
            Error::no_such_key(key)
        } else {
            Error::denied()
        }
    }
}
