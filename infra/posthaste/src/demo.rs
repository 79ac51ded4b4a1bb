//! `demo`: the README's first command. A server, subscribers and real sample events on this
//! machine: every attempt as it happens, a summary, and a dead letter. The demo uses the server
//! over its HTTP API, as any program would.

mod folder;
mod plan;
mod printer;
mod story;
mod subscriber;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use posthaste_cli::cli::GlobalOptions;
use posthaste_cli::client::{ApiCall, ClientError, ServerClient};
use posthaste_cli::commands::{AdminSession, ApplyResult, apply_file, dead_letter_call};
use posthaste_cli::error::{CommandError, CommandFailure};
use posthaste_cli::output::CommandReply;
use posthaste_cli::threads::server_runtime;
use posthaste_core::api::{DeadLetterPage, TopicKeysView};
use posthaste_core::model::{AddressPolicy, Secret, SigningSecret};
use posthaste_http::ClientSettings;
use posthaste_ports::Clock;
use posthaste_server::{RunningServer, ServeSettings, log};
use posthaste_settings::LogFormat;
use posthaste_system::SystemClock;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use ureq::http::Method;

pub use self::folder::FolderError;
use self::plan::{ROLES, SAMPLES};
use self::printer::DemoPrinter;
use self::story::DemoStory;
use self::subscriber::{DemoSubscriber, ReceivedWebhook};

/// The data folder, if no other is named.
const DATA_DIR: &str = "./posthaste-data/demo";

/// Log filter beside the story: only errors.
const LOG_FILTER: &str = "error";

/// Longest time of the story, which takes about six seconds.
const STORY_MAX: Duration = Duration::from_mins(1);

/// Time between two requests for dead letters.
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// Longest time of the server's drain.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Error of the demo.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The subscribers cannot be started.
    #[error("failed to start the demo's subscribers")]
    Start(#[source] io::Error),
    /// The declaration is not accepted, which is a fault of the program.
    #[error("failed to declare the demo's topics")]
    Declaration(#[source] serde_json::Error),
    /// A delivery did not end as planned.
    #[error("the demo did not end as it should:\n  {}", .0.join("\n  "))]
    Faults(Vec<String>),
}

impl CommandFailure for DemoError {}

/// The subscribers by the names of their subscriptions.
type DemoSubscribers = HashMap<&'static str, Arc<DemoSubscriber>>;

/// The demo while it runs.
struct RunningDemo {
    runtime: Runtime,
    session: AdminSession,
    subscribers: DemoSubscribers,
    seen: mpsc::UnboundedReceiver<ReceivedWebhook>,
    printer: DemoPrinter,
    data_dir: PathBuf,
}

/// Runs the demo and returns its summary.
pub fn run(global: &GlobalOptions) -> Result<CommandReply, CommandError> {
    let data_dir = global
        .data_dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(DATA_DIR));
    folder::recreate(&data_dir).map_err(DemoError::Folder)?;
    log::start(Some(LogFormat::Pretty), LOG_FILTER);
    let runtime = server_runtime().map_err(DemoError::Start)?;
    let addresses = AddressPolicy {
        allowed: vec![loopback_network()],
        ..AddressPolicy::default()
    };
    let settings = ServeSettings {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        data_dir: data_dir.clone(),
        client: ClientSettings {
            addresses,
            ..ClientSettings::default()
        },
        ..ServeSettings::default()
    };
    let app = runtime.block_on(RunningServer::start(&settings))?;
    let (story, seen) = mpsc::unbounded_channel();
    let subscribers = runtime
        .block_on(start_subscribers(&story))
        .map_err(DemoError::Start)?;
    let session = AdminSession::new(
        ServerClient::new(&app.manage_url())?,
        app.admin_key().clone(),
    );
    let mut demo = RunningDemo {
        runtime,
        session,
        subscribers,
        seen,
        printer: DemoPrinter::new(global.json),
        data_dir,
    };
    let story = demo.play_story();
    let drained = demo.runtime.block_on(app.drain(DRAIN_TIMEOUT));
    let story = story?;
    drained?;
    demo.into_reply(&story)
}

fn loopback_network() -> IpNet {
    // 127.0.0.0/8, whose prefix length is in range.
    Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8).into()
}

async fn start_subscribers(
    story: &mpsc::UnboundedSender<ReceivedWebhook>,
) -> io::Result<DemoSubscribers> {
    let mut subscribers = HashMap::new();
    for role in &ROLES {
        let subscriber = DemoSubscriber::start(role.subscription, role.part, story.clone()).await?;
        subscribers.insert(role.subscription, subscriber);
    }
    Ok(subscribers)
}

impl RunningDemo {
    fn play_story(&mut self) -> Result<DemoStory, CommandError> {
        self.printer.print_opening(&self.session, &self.data_dir);
        self.declare_topics()?;
        self.publish_samples()?;
        let mut story = DemoStory::default();
        let began = SystemClock.monotonic();
        while !self.is_over(&mut story)?
            && SystemClock.monotonic().saturating_sub(began) < STORY_MAX
        {
            self.watch_attempts(&mut story);
        }
        story.last_dead_event = self.last_dead_event(&story)?;
        Ok(story)
    }

    /// Declares topics and subscriptions, and gives every subscriber the secret that was made for
    /// it.
    fn declare_topics(&self) -> Result<(), CommandError> {
        let file = plan::topics_file(|name| self.url_of(name)).map_err(DemoError::Declaration)?;
        let mut applied = ApplyResult::default();
        apply_file(&self.session, &file, &mut applied)?;
        for secret in &applied.secrets {
            let Ok(signing) = SigningSecret::parse(&secret.value) else {
                continue;
            };
            let name = secret
                .of
                .split_once('/')
                .map_or("", |(_, subscription)| subscription);
            if let Some(subscriber) = self.subscribers.get(name) {
                subscriber.set_secret(signing);
            }
        }
        Ok(())
    }

    fn url_of(&self, subscription: &str) -> String {
        let subscriber = self.subscribers.get(subscription);
        subscriber.map(|it| it.url.clone()).unwrap_or_default()
    }

    fn publish_samples(&self) -> Result<(), CommandError> {
        for sample in &SAMPLES {
            let keys: TopicKeysView = self
                .session
                .request_json(Method::GET, &["topics", sample.topic, "keys"])?;
            let key = Secret::new(keys.key1.expose());
            let path = ["topics", sample.topic, "events"];
            let call = ApiCall::new(Method::POST, &path).key(&key);
            self.session
                .client
                .send(call.body(sample.content_type, sample.bytes.as_bytes().to_vec()))?;
            self.printer.print_published(sample);
        }
        Ok(())
    }

    /// Prints every attempt of the next moment.
    fn watch_attempts(&mut self, story: &mut DemoStory) {
        let seen = &mut self.seen;
        let printer = &self.printer;
        self.runtime.block_on(async {
            let mut moment = pin!(SystemClock.sleep(LOOK_PERIOD));
            loop {
                tokio::select! {
                    Some(request) = seen.recv() => {
                        printer.print_attempt(&request);
                        story.seen.push(request);
                    }
                    () = moment.as_mut() => return,
                }
            }
        });
    }

    /// True once every request was made and every dead letter is in its place.
    fn is_over(&self, story: &mut DemoStory) -> Result<bool, ClientError> {
        if !story.is_all_seen() {
            return Ok(false);
        }
        let mut is_over = true;
        for role in &ROLES {
            let path = [
                "topics",
                role.topic,
                "subscriptions",
                role.subscription,
                "dead-letters",
            ];
            let page: DeadLetterPage = self.session.request_json(Method::GET, &path)?;
            is_over &= role.dead_letter_reason.is_none() || page.dead_letters.len() >= role.events;
            story.dead.insert(role.subscription, page.dead_letters);
        }
        Ok(is_over)
    }

    /// The event of the last dead letter, as it is stored.
    fn last_dead_event(&self, story: &DemoStory) -> Result<String, ClientError> {
        let letters = story.dead_letters();
        let Some(letter) = letters.last() else {
            return Ok(String::new());
        };
        let call = dead_letter_call(&self.session, &letter.object);
        let events: Vec<Box<RawValue>> = self.session.client.send_for_json(call)?;
        let event = events.get(letter.index);
        Ok(event
            .map(|event| event.get().to_owned())
            .unwrap_or_default())
    }

    fn into_reply(self, story: &DemoStory) -> Result<CommandReply, CommandError> {
        let faults: Vec<String> = ROLES
            .iter()
            .flat_map(|role| story.find_faults(role))
            .collect();
        if !faults.is_empty() {
            return Err(DemoError::Faults(faults).into());
        }
        Ok(printer::summary_reply(story, &self.data_dir))
    }
}
