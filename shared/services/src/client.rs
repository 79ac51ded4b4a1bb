//! The client of the request that a task responds to: whether it has closed its side of the
//! connection.
//!
//! A client may do so because it has nothing more to send, and still read its response. So this
//! ends nothing but waits, and only those whose end can be told in a response.

use std::future::{Future, pending, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A connection, as far as it shows its client.
pub trait RequestClient: Send + Sync {
    /// Completes once the client has closed its side, or its connection broke. Never completes where
    /// that cannot be told.
    fn poll_closed(&self, context: &mut Context<'_>) -> Poll<()>;
}

tokio::task_local! {
    static CLIENT: Arc<dyn RequestClient>;
}

/// Runs the work that responds to a request of this client.
pub fn answer_for_client<F: Future>(
    client: Arc<dyn RequestClient>,
    answer: F,
) -> impl Future<Output = F::Output> {
    CLIENT.scope(client, answer)
}

/// Completes once the client of the request that this task responds to has closed its side. Never
/// completes in a task of another kind.
pub async fn wait_until_closed() {
    match CLIENT.try_with(Arc::clone) {
        Ok(client) => poll_fn(|context| client.poll_closed(context)).await,
        Err(_) => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    struct Closed(bool);

    impl RequestClient for Closed {
        fn poll_closed(&self, _: &mut Context<'_>) -> Poll<()> {
            if self.0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }
    }

    #[test]
    fn client_is_the_one_of_the_request_that_is_answered() {
        let seen = |is_closed| {
            answer_for_client(Arc::new(Closed(is_closed)), wait_until_closed()).now_or_never()
        };
        assert_eq!((seen(true), seen(false)), (Some(()), None));
        assert_eq!(wait_until_closed().now_or_never(), None);
    }
}
