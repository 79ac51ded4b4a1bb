//! Requests that do not tell of which chain of invocations they are a part.
//!
//! The SDK's `RecursionDetectionInterceptor` cannot be disabled: the service clients hold it as permanent. So what it
//! adds is taken away again, before the request is signed.

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextMut;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;

/// The trace's id, and with it how often each function was part of the chain.
/// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html>
const TRACE_ID: &str = "x-amzn-trace-id";

/// Runs after the SDK's own interceptors, as all do that a client's settings name.
#[derive(Debug)]
pub(super) struct Untraced;

impl Intercept for Untraced {
    fn name(&self) -> &'static str {
        "Untraced"
    }

    fn modify_before_signing(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        _settings: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        context.request_mut().headers_mut().remove(TRACE_ID);
        Ok(())
    }
}
