//! Requests that do not name the chain of invocations that sent them.
//!
//! The SDK's `RecursionDetectionInterceptor` cannot be disabled: the service clients hold it as
//! permanent. So the header that it adds is removed before the request is signed.

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextMut;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;

/// The header with the trace's id and the number of turns that each function had in the chain.
/// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html>
const TRACE_ID: &str = "x-amzn-trace-id";

/// Removes the header. Interceptors of a client's settings run after the SDK's own.
#[derive(Debug)]
pub(super) struct TraceHeaderRemover;

impl Intercept for TraceHeaderRemover {
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
