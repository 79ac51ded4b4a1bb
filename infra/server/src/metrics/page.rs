//! The page of all series: rendered off the threads that answer requests, and once for all who ask
//! in the same second.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use posthaste_core::model::TopicName;
use posthaste_core::stored::layout;
use posthaste_otlp::MetricPoint;
use posthaste_ports::{Clock, ObjectStore, QueueReceiver};
use posthaste_services::TopicRegistry;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use super::by::SeriesBy;
use super::exposition;
use super::form::PageFormat;
use super::owner::OwnerTopics;
use super::points::points_from_lines;
use super::series::{MetricSeries, TOPICS_MAX};
use super::standing::LookedUpMetrics;

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
pub struct MetricsPages<S, Q, C> {
    series: MetricSeries,
    standing: Arc<LookedUpMetrics<S, Q, C>>,
    registry: TopicRegistry<S, C>,
    latest: Mutex<BTreeMap<PageFormat, Arc<MetricsPage>>>,
    places: Arc<Semaphore>,
}

impl<S, Q, C> fmt::Debug for MetricsPages<S, Q, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

/// A page. It has a place until the last who reads it is done.
#[derive(Debug)]
struct MetricsPage {
    begun: Duration,
    /// `None` if rendering them failed.
    pieces: OnceCell<Option<Vec<Bytes>>>,
    _place: OwnedSemaphorePermit,
}

impl<S, Q, C> MetricsPages<S, Q, C>
where
    S: ObjectStore + 'static,
    Q: QueueReceiver + 'static,
    C: Clock,
{
    /// The page of these series. The registry knows which topics and subscriptions there are.
    pub fn new(
        series: MetricSeries,
        standing: LookedUpMetrics<S, Q, C>,
        registry: TopicRegistry<S, C>,
    ) -> Self {
        Self {
            series,
            standing: Arc::new(standing),
            registry,
            latest: Mutex::default(),
            places: Arc::new(Semaphore::new(PAGES_MAX)),
        }
    }

    /// The page of this second; an older one where all places are taken by those who read slowly.
    pub async fn current_page(&self, form: PageFormat) -> Result<Body, PageError> {
        let page = self.take_page(form).ok_or(PageError::Crowded)?;
        let pieces = page
            .pieces
            .get_or_init(|| self.render_page(form, Arc::clone(&page)));
        if pieces.await.is_none() {
            return Err(PageError::NotRendered);
        }
        let next = 0;
        Ok(Body::new(PageBody { page, next }))
    }

    /// Gives the first topics their places, and forgets what is gone where room becomes scarce.
    pub async fn run_upkeep(&self) {
        self.expect_topics().await;
        self.series.count_upkeep();
        let idle = self.series.idle_owners();
        if !idle.is_empty() {
            let topics = OwnerTopics::look_up(&idle, &self.registry).await;
            self.series.forget_owners(&topics.owners_gone(idle));
        }
    }

    fn take_page(&self, form: PageFormat) -> Option<Arc<MetricsPage>> {
        let now = self.standing.clock.monotonic();
        let mut latest = self.latest.lock();
        // What nobody reads any more makes room.
        latest.retain(|_, page| page.is_fresh(now) || Arc::strong_count(page) > 1);
        if let Some(page) = latest.get(&form).filter(|page| page.is_fresh(now)) {
            return Some(Arc::clone(page));
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let known = latest.get(&form).cloned();
            return known.filter(|page| !page.has_failed());
        };
        let page = Arc::new(MetricsPage {
            begun: now,
            pieces: OnceCell::new(),
            _place: place,
        });
        latest.insert(form, Arc::clone(&page));
        Some(page)
    }

    /// Renders a page, which keeps its place for as long as that takes. Series of topics and
    /// subscriptions that are gone are forgotten; while the store does not answer, none are.
    async fn render_page(&self, form: PageFormat, page: Arc<MetricsPage>) -> Option<Vec<Bytes>> {
        self.expect_topics().await;
        let shown = self.series.shown_owners();
        let topics = OwnerTopics::look_up(&self.series.owners(), &self.registry).await;
        if let Some(error) = topics.first_error() {
            tracing::warn!(
                error = error as &dyn Error,
                "a topic was not looked up, its metrics are not forgotten"
            );
        }
        self.series.forget_owners(&topics.owners_gone(shown));
        let topics = topics.existing_topics();
        let series = self.series.clone();
        let standing = Arc::clone(&self.standing);
        let runtime = Handle::current();
        let rendered = in_background(move || {
            let _page = page;
            let standing = runtime.block_on(standing.read_lines(series.series_by(), &topics));
            let mut lines = series.lines_for_page();
            lines.extend(standing);
            lines.sort_by_key(|line| line.place);
            exposition::render(&lines, form)
        });
        rendered.await
    }

    /// All samples, for a collector. Nothing counts as shown by this, nor is forgotten. `None` if
    /// reading them failed, which was logged.
    pub async fn collect_points(&self) -> Option<Vec<MetricPoint>> {
        let topics = OwnerTopics::look_up(&self.series.owners(), &self.registry).await;
        let topics = topics.existing_topics();
        let series = self.series.clone();
        let standing = Arc::clone(&self.standing);
        let runtime = Handle::current();
        let points = in_background(move || {
            let mut lines = series.read_lines();
            lines.extend(runtime.block_on(standing.read_lines(series.series_by(), &topics)));
            points_from_lines(&lines)
        });
        points.await
    }

    /// Gives places to the first topics of the store, one more than there is room for: then their
    /// number is known to be too large.
    async fn expect_topics(&self) {
        if self.series.series_by() == SeriesBy::Total {
            return;
        }
        let store = &self.standing.state;
        match store.list(layout::TOPICS, None, TOPICS_MAX + 1).await {
            Ok(page) => {
                let keys = page.objects.iter();
                let names = keys.map(|object| layout::topic_name(&object.key));
                let names = names.filter_map(|name| TopicName::parse(name).ok());
                self.series.expect_topics(names);
            }
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::warn!(error, "the topics were not listed for their metrics");
            }
        }
    }
}

/// `None` after a panic, or at the end of the process.
async fn in_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    spawn_blocking(work)
        .await
        .inspect_err(|error| tracing::error!(%error, "the metrics were not read"))
        .ok()
}

impl MetricsPage {
    /// Whether it may still be shown as the page of this time.
    fn is_fresh(&self, now: Duration) -> bool {
        now.saturating_sub(self.begun) < SHARED_FOR
    }

    /// Whether rendering it failed.
    fn has_failed(&self) -> bool {
        self.pieces.get().is_some_and(Option::is_none)
    }
}

/// A page that is being sent.
struct PageBody {
    page: Arc<MetricsPage>,
    next: usize,
}

impl PageBody {
    fn unsent_pieces(&self) -> &[Bytes] {
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
        let piece = self.unsent_pieces().first().cloned();
        self.next += 1;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.unsent_pieces().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(
            self.unsent_pieces()
                .iter()
                .map(|piece| piece.len() as u64)
                .sum(),
        )
    }
}

#[cfg(test)]
mod tests;
