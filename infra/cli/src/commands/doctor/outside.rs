//! Facts that this program sees of a server: whether it answers, its certificate, its clock, its
//! version.

use std::path::Path;
use std::time::Duration;

use posthaste_core::api::doctor::{
    CheckResult, CheckView, ClockReading, ConnectedEndpoint, EndpointFault, certificate_check,
    clock_check,
};
use posthaste_core::model::{AddressPolicy, Link, SendFailure};
use posthaste_http::{ClientSettings, HyperWebhookClient};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde_json::Value;
use ureq::http::{Method, header};
use url::Url;

use crate::client::{ApiCall, ClientError, ClientResponse, ServerClient};
use crate::error::CommandError;

/// Longest wait for each answer, and for the handshake: a server that is well answers at once.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The networks that hold every address: an operator may ask any server.
const ALL_NETWORKS: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// Advice where something answers, but not as a server of posthaste does.
const NOT_POSTHASTE: &str = "is it posthaste that answers there? --url or POSTHASTE_URL says where to look; otherwise look at its log";

/// The facts that were seen of a server.
pub(super) struct OutsideChecks {
    pub(super) checks: Vec<CheckView>,
    /// Whether it answers at all.
    pub(super) is_reached: bool,
    /// The version of the server, where it tells it without a key, as `serve` does.
    pub(super) version: Option<String>,
}

/// Looks at a server without a key.
pub(super) fn check_from_outside(
    client: &ServerClient,
    authorities: Option<&Path>,
) -> OutsideChecks {
    let of = client.base_url().to_string();
    let mut checks = Vec::new();
    checks.extend(transport_check(client, authorities));
    let asked_at = SystemClock.now();
    let began = SystemClock.monotonic();
    // On AWS, and before 0.2, `/health` is all there is.
    let alive = probe_state(client, "livez");
    let took = SystemClock.monotonic().saturating_sub(began);
    let answered_at = SystemClock.now();
    let answer = match alive {
        Ok(answer) => answer,
        Err(error) => {
            let error = CommandError::from(error);
            let advice = error.hint().unwrap_or_else(|| NOT_POSTHASTE.to_owned());
            let server = CheckView::passed("server", of, error.to_line());
            checks.push(server.with_result(CheckResult::Failed, advice));
            return OutsideChecks {
                checks,
                is_reached: false,
                version: None,
            };
        }
    };
    let found = format!("answers in {} ms", took.as_millis());
    checks.push(CheckView::passed("server", &of, found));
    checks.push(readiness_check(&of, probe_state(client, "readyz")));
    let date = answer.headers.get(header::DATE);
    let reading = ClockReading {
        date: date.and_then(|date| date.to_str().ok()),
        asked_at,
        answered_at,
    };
    checks.push(clock_check(&of, &reading));
    let version: Result<Value, _> =
        client.send_for_json(ApiCall::new(Method::GET, &["version"]).timeout(TIMEOUT));
    let version = version
        .ok()
        .and_then(|it| Some(it["version"].as_str()?.to_owned()));
    OutsideChecks {
        checks,
        is_reached: true,
        version,
    }
}

/// The answer to a question about the process, or where it does not know that, about health.
fn probe_state(client: &ServerClient, path: &str) -> Result<ClientResponse, ClientError> {
    match request_path(client, path) {
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => {
            request_path(client, "health")
        }
        answer => answer,
    }
}

fn request_path(client: &ServerClient, path: &str) -> Result<ClientResponse, ClientError> {
    client.send(ApiCall::new(Method::GET, &[path]).timeout(TIMEOUT))
}

fn readiness_check(of: &str, answer: Result<ClientResponse, ClientError>) -> CheckView {
    match answer {
        Ok(_) => CheckView::passed("ready", of, "takes requests"),
        Err(error) => {
            let error = CommandError::from(error);
            CheckView::passed("ready", of, error.to_line()).with_result(
                CheckResult::Failed,
                "look at the server's log; a server that starts or ends is ready soon, or never again",
            )
        }
    }
}

/// The way to the server: its certificate, or that there is none.
fn transport_check(client: &ServerClient, authorities: Option<&Path>) -> Option<CheckView> {
    let base = client.base_url();
    if base.scheme() == "https" {
        let look = connect_to(&tls_link(base)?, authorities)?;
        let failure = look.as_ref().err().map(|fault| fault.failure);
        let is_of_tls = failure.is_none_or(|it| it.is_tls() && it != SendFailure::NotTls);
        // Whatever else it is, the server is not reached for it, which is said next.
        return is_of_tls.then(|| certificate_check(base.as_str(), &look, SystemClock.now()));
    }
    (!client.is_on_this_machine()).then(|| {
        CheckView::passed(
            "transport",
            base.as_str(),
            "plain HTTP, in which the admin key and events can be read on the way",
        )
        .with_result(
            CheckResult::Warning,
            "put TLS in front of the server; within a private network this may be in order",
        )
    })
}

fn tls_link(base: &Url) -> Option<Link> {
    let host = base.host_str()?;
    Some(Link {
        is_tls: true,
        host: host.trim_matches(['[', ']']).into(),
        port: base.port_or_known_default()?,
    })
}

/// Connects to the server and trusts whom the client of the commands trusts: the machine's own
/// authorities, and those of a file.
/// `None` where no runtime or no TLS can be set up, which the next request says.
fn connect_to(
    link: &Link,
    authorities: Option<&Path>,
) -> Option<Result<ConnectedEndpoint, EndpointFault>> {
    let settings = ClientSettings {
        addresses: AddressPolicy {
            allowed: ALL_NETWORKS
                .iter()
                .filter_map(|net| net.parse().ok())
                .collect(),
            ..AddressPolicy::default()
        },
        extra_root_file: authorities.map(Path::to_owned),
        ..ClientSettings::default()
    };
    let client = HyperWebhookClient::new(settings, SystemClock).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    Some(runtime.block_on(client.look_at(link, TIMEOUT)))
}

/// The version of a server beside the own one.
pub(super) fn version_check(of: &str, server: Option<&str>) -> CheckView {
    let own = env!("CARGO_PKG_VERSION");
    match server {
        Some(server) if server == own => CheckView::passed(
            "version",
            of,
            format!("{server}, the same as this program's"),
        ),
        Some(server) => {
            let found = format!("{server}, and this program is {own}");
            let advice = "use the program of the server's release: its options and messages fit";
            CheckView::passed("version", of, found).with_result(CheckResult::Warning, advice)
        }
        None => CheckView::passed("version", of, format!("not told; this program is {own}"))
            .with_result(CheckResult::Unknown, "mend the check `key` first"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_differ_are_a_warning() {
        let own = env!("CARGO_PKG_VERSION");
        let check = |server, expected| {
            let check = version_check("http://h", server);
            assert_eq!(check.result, expected, "{check:?}");
        };
        check(Some(own), CheckResult::Ok);
        check(Some("0.0.9"), CheckResult::Warning);
        check(None, CheckResult::Unknown);
    }

    #[test]
    fn plain_http_to_another_machine_is_a_warning() {
        let check = |url: &str, expected| {
            let transport = transport_check(&ServerClient::new(url).unwrap(), None);
            assert_eq!(transport.map(|it| it.result), expected, "{url}");
        };
        check("http://127.0.0.1:8080", None);
        check("http://10.0.0.1:8080", Some(CheckResult::Warning));
    }

    #[test]
    fn link_of_a_server_is_its_host_and_port() {
        let check = |url: &str, expected: &str| {
            assert_eq!(
                tls_link(&url.parse().unwrap()).unwrap().to_string(),
                expected
            );
        };
        check("https://h.example/base", "https://h.example:443");
        check("https://[::1]:8443", "https://[::1]:8443");
    }
}
