//! Publish URLs of this installation. An endpoint that is one of them publishes again what is
//! delivered to it, so it is refused when it is written. Only what the installation knows of itself
//! is found: the address it listens on and the URLs it was given. Another name of the same place is
//! not found, and a loop through that ends by its [`crate::model::hops`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

use crate::model::address::is_localhost;
use crate::model::endpoint::EndpointUrl;

/// Path on which events are published.
pub const EVENTS_PATH: &str = "/topics/{topic}/events";

/// The same with Event Grid's own ending: some Azure clients add it to the endpoint they are given.
pub const API_EVENTS_PATH: &str = "/topics/{topic}/api/events";

/// Publish URLs of this installation, as far as it knows them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublishUrls(Vec<PublishBase>);

/// An endpoint is a publish URL of this installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "is a publish URL of this installation: what is delivered there would be published again without end; \
     write the URL of the service that is to receive the events"
)]
pub struct OwnPublishUrl;

/// One place under which the publish paths lie.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PublishBase {
    /// A URL, which may have a path.
    Url(Url),
    /// An address that is listened on.
    Address(SocketAddr),
}

impl PublishUrls {
    /// Adds the publish URLs under `base`, an absolute `https` or `http` URL.
    #[must_use]
    pub fn with_base(mut self, base: Option<Url>) -> Self {
        self.0.extend(base.map(PublishBase::Url));
        self
    }

    /// Adds the publish URLs of a server that listens on this address. If it listens on every
    /// address of the machine, only those of loopback are known.
    #[must_use]
    pub fn listening_on(mut self, address: SocketAddr) -> Self {
        self.0.push(PublishBase::Address(address));
        self
    }

    /// Refuses an endpoint that is one of them. The scheme and the query do not matter.
    pub fn refuse_own_url(&self, endpoint: &EndpointUrl) -> Result<(), OwnPublishUrl> {
        if self
            .0
            .iter()
            .any(|base| base.covers_endpoint(endpoint.url()))
        {
            Err(OwnPublishUrl)
        } else {
            Ok(())
        }
    }
}

impl PublishBase {
    fn covers_endpoint(&self, endpoint: &Url) -> bool {
        match self {
            Self::Url(base) => {
                host_without_dot(base) == host_without_dot(endpoint)
                    && has_same_port(base, endpoint)
                    && is_publish_path(base.path(), endpoint.path())
            }
            Self::Address(address) => {
                endpoint.port_or_known_default() == Some(address.port())
                    && loopback_or_literal(endpoint)
                        .iter()
                        .any(|target| reaches_listener(*target, address.ip()))
                    && is_publish_path("/", endpoint.path())
            }
        }
    }
}

/// The host without the full stop that ends an absolute name. The parser has put names into lower
/// case.
fn host_without_dot(url: &Url) -> Option<Host<&str>> {
    Some(match url.host()? {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(name)),
        address @ (Host::Ipv4(_) | Host::Ipv6(_)) => address,
    })
}

/// Whether both have one port. Behind the default ports of both schemes there is one server.
fn has_same_port(one: &Url, other: &Url) -> bool {
    one.port_or_known_default() == other.port_or_known_default()
        || one.port().or(other.port()).is_none()
}

/// The addresses of a host that need no resolver: its own, or loopback for `localhost` names.
fn loopback_or_literal(url: &Url) -> Vec<IpAddr> {
    match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) if is_localhost(name) => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Some(Host::Domain(_)) | None => Vec::new(),
    }
}

/// Whether a connection to `target` reaches a server that listens on `listening`, on the machine
/// itself.
fn reaches_listener(target: IpAddr, listening: IpAddr) -> bool {
    // A connection to the unspecified address goes to loopback.
    let target = match target.to_canonical() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    match listening {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => target.is_ipv4() && target.is_loopback(),
        // The unspecified IPv6 address takes IPv4 too.
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => target.is_loopback(),
        listening => target == listening.to_canonical(),
    }
}

/// Whether events are published on this path of a server whose paths begin with `base`.
fn is_publish_path(base: &str, path: &str) -> bool {
    let base = base.strip_suffix('/').unwrap_or(base);
    let rest = path.strip_prefix(base);
    rest.is_some_and(|rest| matches_path(EVENTS_PATH, rest) || matches_path(API_EVENTS_PATH, rest))
}

/// Whether a path is of this pattern, in which a part in braces stands for any text.
fn matches_path(pattern: &str, path: &str) -> bool {
    let wanted = pattern.split('/');
    let found = path.split('/');
    wanted.clone().count() == found.clone().count()
        && wanted.zip(found).all(|(wanted, found)| {
            if wanted.starts_with('{') {
                !found.is_empty()
            } else {
                wanted == found
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(urls: &PublishUrls, endpoint: &str, is_own: bool) {
        let endpoint = EndpointUrl::parse(endpoint).unwrap();
        assert_eq!(
            urls.refuse_own_url(&endpoint).is_err(),
            is_own,
            "{urls:?} {}",
            endpoint.as_str()
        );
    }

    fn under(base: &str) -> PublishUrls {
        PublishUrls::default().with_base(Some(base.parse().unwrap()))
    }

    fn listening_on(address: &str) -> PublishUrls {
        PublishUrls::default().listening_on(address.parse().unwrap())
    }

    #[test]
    fn every_endpoint_is_allowed_without_known_publish_urls() {
        check(
            &PublishUrls::default(),
            "https://a.example/topics/orders/events",
            false,
        );
        check(
            &PublishUrls::default().with_base(None),
            "https://a.example/topics/orders/events",
            false,
        );
    }

    #[test]
    fn every_publish_path_of_every_topic_is_one_and_no_other_path() {
        for path in [
            "topics/orders/events",
            "topics/Other/api/events",
            "topics/orders/events?a=b",
        ] {
            check(
                &under("https://a.example"),
                &format!("https://a.example/{path}"),
                true,
            );
            check(
                &listening_on("127.0.0.1:8080"),
                &format!("http://127.0.0.1:8080/{path}"),
                true,
            );
        }
        for path in [
            "",
            "topics",
            "topics/orders",
            "topics/orders/events/",
            "topics//events",
            "topics/orders/api/api/events",
            "topics/orders/subscriptions",
            "Topics/orders/events",
            "hooks/topics/orders/events",
        ] {
            check(
                &under("https://a.example"),
                &format!("https://a.example/{path}"),
                false,
            );
            check(
                &listening_on("127.0.0.1:8080"),
                &format!("http://127.0.0.1:8080/{path}"),
                false,
            );
        }
    }

    #[test]
    fn a_public_url_may_have_a_path() {
        for base in ["https://a.example/base", "https://a.example/base/"] {
            check(
                &under(base),
                "https://a.example/base/topics/orders/events",
                true,
            );
            check(
                &under(base),
                "https://a.example/topics/orders/events",
                false,
            );
            check(
                &under(base),
                "https://a.example/basement/topics/orders/events",
                false,
            );
        }
    }

    /// Hosts are compared without case, final dot, default port and scheme.
    #[test]
    fn host_comparison_ignores_case_dot_default_port_and_scheme() {
        let path = "topics/orders/events";
        for base in [
            "https://Hooks.Example.com",
            "https://hooks.example.com.:443/",
        ] {
            for same in [
                "https://hooks.example.com",
                "https://HOOKS.example.COM:443",
                "https://hooks.example.com.",
                "http://hooks.example.com",
                "http://hooks.example.com:443",
            ] {
                check(&under(base), &format!("{same}/{path}"), true);
            }
            for other in [
                "https://hooks.example.com:8443",
                "https://example.com",
                "https://a.hooks.example.com",
            ] {
                check(&under(base), &format!("{other}/{path}"), false);
            }
        }
        check(
            &under("https://[2001:DB8::1]:8443"),
            &format!("https://[2001:db8:0::1]:8443/{path}"),
            true,
        );
    }

    #[test]
    fn listening_address_is_known_under_loopback_names() {
        let check_all = |listening: &str, hosts: &[&str], is_own: bool| {
            for host in hosts {
                let endpoint = format!("http://{host}/topics/orders/events");
                check(&listening_on(listening), &endpoint, is_own);
            }
        };
        let known = |listening: &str, same: &[&str], other: &[&str]| {
            check_all(listening, same, true);
            check_all(listening, other, false);
        };
        let localhost = ["localhost:8080", "LocalHost.:8080", "api.localhost:8080"];
        let v4 = [
            "127.0.0.1:8080",
            "0x7f.1:8080",
            "0.0.0.0:8080",
            "[::ffff:127.0.0.1]:8080",
        ];
        let v6 = ["[::1]:8080", "[::]:8080"];
        known("127.0.0.1:8080", &[&localhost[..], &v4].concat(), &v6);
        known(
            "127.0.0.1:8080",
            &[],
            &[
                "127.0.0.1:9000",
                "127.0.0.1",
                "127.0.0.2:8080",
                "a.example:8080",
            ],
        );
        known("[::1]:8080", &[&localhost[..], &v6].concat(), &v4);
        known(
            "0.0.0.0:8080",
            &[&localhost[..], &v4, &["127.0.0.2:8080"]].concat(),
            &v6,
        );
        known(
            "[::]:8080",
            &[&localhost[..], &v4, &v6].concat(),
            &["10.0.0.5:8080", "localhost:8081"],
        );
        known(
            "10.0.0.5:8080",
            &["10.0.0.5:8080"],
            &["10.0.0.6:8080", "127.0.0.1:8080", "localhost:8080"],
        );
        known(
            "127.0.0.1:80",
            &["localhost", "127.0.0.1:80"],
            &["localhost:443"],
        );
    }
}
