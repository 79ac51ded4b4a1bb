//! The first https requests of a process: to S3, and to a webhook.

use std::sync::Arc;
use std::time::Instant;

use posthaste_core::model::Timestamp;
use rustls::ServerConfig;

use crate::figures::Figures;
use crate::http::{Exchange, Log, Response, Server};
use crate::programs::World;
use crate::{aws, events};

/// The time and memory of an invocation of a new process.
#[derive(Debug)]
pub(crate) struct First {
    /// From the event to the answer of its first request to S3, over a new connection.
    pub(crate) store: Figures,
    /// From there to the endpoint's answer: the record is read, the request signed, the connection
    /// made.
    pub(crate) post: Figures,
    /// From event to answer.
    pub(crate) invocation: Figures,
    /// The same for the next event, on connections that are open.
    pub(crate) second: Figures,
}

/// A publish of a new process.
#[derive(Debug)]
pub(crate) struct FirstPublish {
    /// From event to answer.
    pub(crate) invocation: Figures,
    /// The same for the next event.
    pub(crate) second: Figures,
}

/// Delivers one event over https, each time by a new process.
pub(crate) fn deliver(
    world: &World,
    tls: &Arc<ServerConfig>,
    starts: usize,
    now: Timestamp,
) -> First {
    let mut store = vec![];
    let mut post = vec![];
    let mut invocation = vec![];
    let mut second = vec![];
    let event = events::delivery(now);
    for _ in 0..starts {
        let hook = Server::start(Some(Arc::clone(tls)), |_| Response::new(204, ""));
        let aws = aws::start(
            Some(Arc::clone(tls)),
            &format!("https://{}/hook", hook.address),
        );
        let world = World {
            aws: format!("https://{}", aws.address),
            ..world.clone()
        };
        let (api, _process) = world.start("deliver");
        let first = api.invoke(&event, 1);
        let stored = first_written(&aws.log);
        let posted = first_written(&hook.log);
        store.push(stored.duration_since(first.given));
        post.push(posted.duration_since(stored));
        invocation.push(first.answered.duration_since(first.given));
        let next = api.invoke(&event, 1);
        second.push(next.answered.duration_since(next.given));
        assert_eq!(hook.log.len(), 2, "both events were posted");
    }
    let [store, post, invocation, second] = [store, post, invocation, second].map(Figures::new);
    First {
        store,
        post,
        invocation,
        second,
    }
}

/// Publishes one event with S3 and SQS over https, each time by a new process.
pub(crate) fn publish(world: &World, tls: &Arc<ServerConfig>, starts: usize) -> FirstPublish {
    let mut invocation = vec![];
    let mut second = vec![];
    let event = events::publish();
    for _ in 0..starts {
        let aws = aws::start(Some(Arc::clone(tls)), "https://127.0.0.1/hook");
        let world = World {
            aws: format!("https://{}", aws.address),
            ..world.clone()
        };
        let (api, _process) = world.start("publish");
        for took in [&mut invocation, &mut second] {
            let invoked = api.invoke(&event, 1);
            took.push(invoked.answered.duration_since(invoked.given));
        }
        // Once the topic and the pressure, and each event.
        assert_eq!(aws.log.len(), 4, "both events were sent");
    }
    FirstPublish {
        invocation: Figures::new(invocation),
        second: Figures::new(second),
    }
}

fn first_written(log: &Log) -> Instant {
    log.wait_for("a request", |log: &[Exchange]| log.first()?.written)
}
