//! Rules of S3, and requests that the double does not support.

use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_testkit::ManualClock;
use posthaste_tests_aws::double::{Access, Double};
use posthaste_tests_aws::emulator::{Emulator, Tool};

use super::{Outcome, accepted, outcome, refused};
use crate::clients::Sdk;

const BUCKET: &str = "strict";

/// A service that is asked to break rules.
struct Bucket {
    s3: Client,
    /// The double or emulator behind it, which runs as long as this is held.
    _home: Arc<dyn Send + Sync>,
}

impl Bucket {
    async fn on_double() -> Self {
        let double = Double::start(ManualClock::new(Timestamp::EPOCH)).await;
        double.bucket(BUCKET, Access::Full);
        Self {
            s3: Sdk::new(&double.endpoint()).s3,
            _home: Arc::new(double),
        }
    }

    async fn on_moto() -> Self {
        let emulator = Emulator::start(Tool::Moto);
        let s3 = Sdk::new(emulator.endpoint()).s3;
        s3.create_bucket().bucket(BUCKET).send().await.unwrap();
        Self {
            s3,
            _home: Arc::new(emulator),
        }
    }

    /// Puts an object and answers its version.
    async fn put(&self, key: &str, bytes: &'static str) -> String {
        let request = self
            .s3
            .put_object()
            .bucket(BUCKET)
            .key(key)
            .body(ByteStream::from_static(bytes.as_bytes()));
        request.send().await.unwrap().e_tag.unwrap()
    }

    async fn put_if_match(&self, key: &str, etag: &str) -> Outcome {
        let request = self.s3.put_object().bucket(BUCKET).key(key).if_match(etag);
        outcome(request.body(ByteStream::from_static(b"new")).send().await)
    }

    async fn put_if_none_match(&self, key: &str, etag: &str) -> Outcome {
        let request = self
            .s3
            .put_object()
            .bucket(BUCKET)
            .key(key)
            .if_none_match(etag);
        outcome(request.body(ByteStream::from_static(b"new")).send().await)
    }

    /// The bytes of a range and the header that says which they are, or the refusal.
    async fn part(&self, key: &str, range: &str) -> Result<(Bytes, String), Outcome> {
        let request = self.s3.get_object().bucket(BUCKET).key(key).range(range);
        let answer = request
            .send()
            .await
            .map_err(|error| outcome::<(), _>(Err(error)))?;
        let bytes = answer.body.collect().await.unwrap().into_bytes();
        Ok((bytes, answer.content_range.unwrap_or_default()))
    }

    async fn list(&self, token: &str) -> Outcome {
        outcome(
            self.s3
                .list_objects_v2()
                .bucket(BUCKET)
                .continuation_token(token)
                .send()
                .await,
        )
    }
}

/// Requests that the double and moto refuse with the same errors.
async fn check_common_rules(bucket: &Bucket) {
    let lost = refused(412, "PreconditionFailed");
    let etag = bucket.put("k", "one").await;
    assert_eq!(bucket.put_if_none_match("k", "*").await, lost);
    assert_eq!(bucket.put_if_match("k", &etag).await, accepted());
    assert_eq!(bucket.put_if_match("k", &etag).await, lost);
    assert_eq!(
        bucket.put_if_match("absent", &etag).await,
        refused(404, "NoSuchKey")
    );
    let known = bucket.put("k", "two").await;
    let unchanged = bucket
        .s3
        .get_object()
        .bucket(BUCKET)
        .key("k")
        .if_none_match(known)
        .send()
        .await;
    assert_eq!(outcome(unchanged).0, 304);
    let part = |bytes: &'static str, range: &str| Ok((Bytes::from(bytes), range.to_owned()));
    assert_eq!(
        bucket.part("k", "bytes=0-1").await,
        part("tw", "bytes 0-1/3")
    );
    assert_eq!(
        bucket.part("k", "bytes=1-9").await,
        part("wo", "bytes 1-2/3")
    );
    assert_eq!(
        bucket.part("k", "bytes=3-9").await,
        Err(refused(416, "InvalidRange"))
    );
    assert_eq!(
        bucket.part("absent", "bytes=0-1").await,
        Err(refused(404, "NoSuchKey"))
    );
    let absent = bucket
        .s3
        .get_object()
        .bucket(BUCKET)
        .key("absent")
        .send()
        .await;
    assert_eq!(outcome(absent), refused(404, "NoSuchKey"));
    let elsewhere = bucket
        .s3
        .get_object()
        .bucket("elsewhere")
        .key("k")
        .send()
        .await;
    assert_eq!(outcome(elsewhere), refused(404, "NoSuchBucket"));
    let deleted = bucket
        .s3
        .delete_object()
        .bucket(BUCKET)
        .key("absent")
        .send()
        .await;
    assert_eq!(outcome(deleted), accepted());
}

#[tokio::test]
async fn the_double_refuses_what_moto_refuses() {
    check_common_rules(&Bucket::on_double().await).await;
}

#[tokio::test]
async fn moto_refuses_what_the_double_refuses() {
    check_common_rules(&Bucket::on_moto().await).await;
}

#[tokio::test]
async fn the_double_refuses_what_aws_documents() {
    let bucket = Bucket::on_double().await;
    assert_eq!(
        bucket.put_if_none_match("k", "\"etag\"").await,
        refused(501, "NotImplemented")
    );
    assert_eq!(
        bucket.list("no token of ours").await,
        refused(400, "InvalidArgument")
    );
    let long = "k".repeat(1025);
    let put = bucket
        .s3
        .put_object()
        .bucket(BUCKET)
        .key(long)
        .body(ByteStream::from_static(b"x"))
        .send()
        .await;
    assert_eq!(outcome(put), refused(400, "KeyTooLongError"));
}

#[tokio::test]
async fn double_refuses_requests_that_it_does_not_know() {
    let bucket = Bucket::on_double().await;
    let unknown = refused(501, "NotImplemented");
    let folders = bucket
        .s3
        .list_objects_v2()
        .bucket(BUCKET)
        .delimiter("/")
        .send()
        .await;
    assert_eq!(outcome(folders), unknown);
    for range in [
        "bytes=-1",
        "bytes=1-",
        "bytes=2-1",
        "bytes=0-0,2-2",
        "items=0-1",
    ] {
        assert_eq!(
            bucket.part("k", range).await,
            Err(unknown.clone()),
            "{range}"
        );
    }
    let copy = bucket
        .s3
        .copy_object()
        .bucket(BUCKET)
        .key("k")
        .copy_source("strict/k")
        .send()
        .await;
    assert_eq!(outcome(copy), unknown);
}

#[tokio::test]
async fn a_page_holds_a_thousand_keys_however_many_are_asked_for() {
    let clock = ManualClock::new(Timestamp::EPOCH);
    let double = Double::start(clock).await;
    double.bucket(BUCKET, Access::Full);
    for number in 0..1001 {
        double.put(BUCKET, &number.to_string(), "");
    }
    let s3 = Sdk::new(&double.endpoint()).s3;
    let page = s3
        .list_objects_v2()
        .bucket(BUCKET)
        .max_keys(2000)
        .send()
        .await
        .unwrap();
    assert_eq!(
        (page.key_count, page.max_keys, page.is_truncated),
        (Some(1000), Some(1000), Some(true))
    );
}

#[tokio::test]
async fn a_request_without_a_signature_is_denied() {
    let double = Double::start(ManualClock::new(Timestamp::EPOCH)).await;
    let open = aws_sdk_s3::Config::builder()
        .behavior_version(aws_sdk_s3::config::BehaviorVersion::latest())
        .region(aws_sdk_s3::config::Region::new("us-east-1"))
        .allow_no_auth()
        .endpoint_url(double.endpoint())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .force_path_style(true);
    let s3 = Client::from_conf(open.build());
    assert_eq!(
        outcome(s3.get_object().bucket(BUCKET).key("k").send().await),
        refused(403, "AccessDenied")
    );
}
