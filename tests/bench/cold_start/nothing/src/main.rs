#![doc = include_str!("../README.md")]

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::de::IgnoredAny;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(async |_: LambdaEvent<IgnoredAny>| {
        Ok::<_, Error>(())
    }))
    .await
}
