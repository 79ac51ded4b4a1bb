//! The page of all series: rendered off the threads that answer requests, and once for all who ask
//! in the same second.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::Mutex;
use posthaste_ports::{Clock, ObjectStore};
use posthaste_services::Registry;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use super::exposition;
use super::owner::gone;
use super::series::Series;

/// Time for which a page is given to all who ask.
const SHARED_FOR: Duration = Duration::from_secs(1);

/// Most pages that are being rendered or sent. A page of 20,000 series has about 20 MB. Where all are
/// being read slowly, those who ask share the latest one.
const PAGES_MAX: usize = 4;

/// Why there is no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// Too many are being rendered or read.
    #[error("too many pages of metrics are being read")]
    Crowded,
    /// Rendering it failed, which was logged.
    #[error("the metrics were not read")]
    NotRendered,
}

/// The page, and the series on it.
pub struct Pages<S, C> {
    series: Series,
    registry: Registry<S, C>,
    clock: C,
    latest: Mutex<Option<Arc<Page>>>,
    places: Arc<Semaphore>,
}

/// A page. It has a place until the last who reads it is done.
#[derive(Debug)]
struct Page {
    begun: Duration,
    /// `None` if rendering them failed.
    pieces: OnceCell<Option<Vec<Bytes>>>,
    _place: OwnedSemaphorePermit,
}

impl<S: ObjectStore, C: Clock> Pages<S, C> {
    /// The page of these series. The registry knows which topics and subscriptions there are.
    pub fn new(series: Series, registry: Registry<S, C>, clock: C) -> Self {
        Self {
            series,
            registry,
            clock,
            latest: Mutex::default(),
            places: Arc::new(Semaphore::new(PAGES_MAX)),
        }
    }

    /// The page of this second; an older one where all places are taken by those who read slowly.
    pub async fn page(&self) -> Result<Body, PageError> {
        let page = self.take().ok_or(PageError::Crowded)?;
        let rendering = Arc::clone(&page);
        let pieces = page.pieces.get_or_init(|| self.render(rendering)).await;
        if pieces.is_none() {
            return Err(PageError::NotRendered);
        }
        let next = 0;
        Ok(Body::new(PageBody { page, next }))
    }

    /// Keeps histograms small, and forgets what is gone where room becomes scarce.
    pub async fn run_upkeep(&self) {
        let series = self.series.clone();
        in_background(move || series.run_upkeep()).await;
        let idle = self.series.idle_owners();
        if !idle.is_empty() {
            let (gone, _) = gone(idle, &self.registry).await;
            self.series.forget(&gone);
        }
    }

    fn take(&self) -> Option<Arc<Page>> {
        let now = self.clock.monotonic();
        let mut latest = self.latest.lock();
        if let Some(page) = &*latest
            && now.saturating_sub(page.begun) < SHARED_FOR
        {
            return Some(Arc::clone(page));
        }
        // Nobody reads it, and nobody will.
        latest.take_if(|page| Arc::strong_count(page) == 1);
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return latest.clone().filter(|page| !page.has_failed());
        };
        let page = Arc::new(Page {
            begun: now,
            pieces: OnceCell::new(),
            _place: place,
        });
        *latest = Some(Arc::clone(&page));
        Some(page)
    }

    /// Renders a page, which keeps its place for as long as that takes. Series of topics and
    /// subscriptions that are gone are forgotten; while the store does not answer, none are.
    async fn render(&self, page: Arc<Page>) -> Option<Vec<Bytes>> {
        let (gone, failed) = gone(self.series.shown_owners(), &self.registry).await;
        if let Some(error) = failed {
            tracing::warn!(
                error = &error as &dyn Error,
                "a topic was not looked up, its metrics are not forgotten"
            );
        }
        self.series.forget(&gone);
        let series = self.series.clone();
        let render = move || {
            let _page = page;
            let handles = series.to_show();
            let texts: Vec<_> = handles.iter().map(PrometheusHandle::render).collect();
            exposition::merge(&texts)
        };
        in_background(render).await
    }
}

/// `None` after a panic, or at the end of the process.
async fn in_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    spawn_blocking(work)
        .await
        .inspect_err(|error| tracing::error!(%error, "the metrics were not read"))
        .ok()
}

impl Page {
    /// Whether rendering it failed.
    fn has_failed(&self) -> bool {
        self.pieces.get().is_some_and(Option::is_none)
    }
}

/// A page that is being sent.
struct PageBody {
    page: Arc<Page>,
    next: usize,
}

impl PageBody {
    fn rest(&self) -> &[Bytes] {
        let pieces = self.page.pieces.get().and_then(Option::as_ref);
        pieces
            .and_then(|all| all.get(self.next..))
            .unwrap_or_default()
    }
}

impl HttpBody for PageBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = self.rest().first().cloned();
        self.next += 1;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest().iter().map(|piece| piece.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests;
