//! Name servers and hosts file of the system, or a single name server. Hickory is used because it
//! tells an authoritative "no such name" from a failure; `getaddrinfo` mixes the two.

use std::net::{IpAddr, SocketAddr};

use futures_util::future::BoxFuture;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{ResolverBuilder, TokioResolver};
use parking_lot::Mutex;
use posthaste_ports::Clock;

use super::families::both_families;
use super::{LookupError, NameLookup};

/// Resolves by `/etc/resolv.conf` and `/etc/hosts`, read when the first name is looked up, or by
/// one name server alone.
///
/// Without a readable `resolv.conf` only the hosts file answers. Names under `localhost` and
/// `invalid` are never sent to a server, because their meaning is fixed (RFC 6761). Search domains
/// are not tried: an endpoint's name is a full name, and `billing.example.com` must not become
/// `billing.example.com.cluster.local`.
///
/// Both address families are looked up side by side. Once the answer about IPv4 is there, the one
/// about IPv6 gets a quarter of a second more, so that a name server that is silent about IPv6 does
/// not delay every attempt (RFC 8305, section 3). Once there are IPv6 addresses, the answer about
/// IPv4 gets two seconds more.
pub struct SystemNames<C> {
    clock: C,
    server: Option<SocketAddr>,
    resolvers: Mutex<Option<Resolvers>>,
}

/// A resolver for each address family: hickory's own look-up of both waits for the slower one.
#[derive(Clone)]
struct Resolvers {
    v4: TokioResolver,
    v6: TokioResolver,
}

impl<C> SystemNames<C> {
    /// Asks this name server and nothing else; without one, the servers of the system's
    /// configuration.
    pub fn new(server: Option<SocketAddr>, clock: C) -> Self {
        Self {
            clock,
            server,
            resolvers: Mutex::default(),
        }
    }

    fn resolvers(&self) -> Result<Resolvers, NetError> {
        let mut resolvers = self.resolvers.lock();
        if let Some(built) = &*resolvers {
            return Ok(built.clone());
        }
        let built = Resolvers {
            v4: build(self.server, LookupIpStrategy::Ipv4Only)?,
            v6: build(self.server, LookupIpStrategy::Ipv6Only)?,
        };
        *resolvers = Some(built.clone());
        Ok(built)
    }
}

impl<C: Clock> NameLookup for SystemNames<C> {
    async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let full_name = format!("{}.", host.trim_end_matches('.'));
        let Resolvers { v4, v6 } = self.resolvers().map_err(meaning)?;
        both_families(
            addresses(&v4, &full_name),
            addresses(&v6, &full_name),
            &self.clock,
        )
        .await
    }

    fn forget(&self) {
        *self.resolvers.lock() = None;
    }
}

fn addresses<'a>(
    resolver: &'a TokioResolver,
    full_name: &'a str,
) -> BoxFuture<'a, Result<Vec<IpAddr>, LookupError>> {
    // Boxed: hickory's look-up is several kilobytes large.
    Box::pin(async move {
        let answer = resolver.lookup_ip(full_name).await.map_err(meaning)?;
        Ok(answer.iter().collect())
    })
}

fn build(server: Option<SocketAddr>, family: LookupIpStrategy) -> Result<TokioResolver, NetError> {
    let mut builder = server.map_or_else(by_the_system, by_one_server);
    let options = builder.options_mut();
    options.ip_strategy = family;
    // The client's own cache decides how long an answer is used, and can be flushed.
    options.cache_size = 0;
    builder.build()
}

type Builder = ResolverBuilder<TokioRuntimeProvider>;

fn by_the_system() -> Builder {
    TokioResolver::builder_tokio().unwrap_or_else(|error| {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(
            error,
            "no resolver configuration: only the hosts file is used"
        );
        asking(Vec::new())
    })
}

/// Over UDP, and over TCP where an answer does not fit.
fn by_one_server(address: SocketAddr) -> Builder {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    let mut builder = asking(vec![server]);
    builder.options_mut().use_hosts_file = ResolveHosts::Never;
    builder
}

fn asking(servers: Vec<NameServerConfig>) -> Builder {
    let config = ResolverConfig::from_parts(None, Vec::new(), servers);
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
}

fn meaning(error: NetError) -> LookupError {
    if error.is_nx_domain() {
        LookupError::DoesNotExist
    } else {
        LookupError::NoAnswer(error.into())
    }
}

#[cfg(test)]
mod tests {
    use hickory_resolver::net::{DnsError, NoRecords};
    use hickory_resolver::proto::op::{Query, ResponseCode};
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;

    use super::*;

    #[test]
    fn only_an_authoritative_answer_says_that_a_name_does_not_exist() {
        let no_records =
            |code| NetError::Dns(DnsError::NoRecordsFound(NoRecords::new(Query::new(), code)));
        let check = |error, expected| {
            assert_eq!(
                matches!(meaning(error), LookupError::DoesNotExist),
                expected
            );
        };
        check(no_records(ResponseCode::NXDomain), true);
        check(no_records(ResponseCode::NoError), false);
        check(
            NetError::Dns(DnsError::ResponseCode(ResponseCode::ServFail)),
            false,
        );
        check(NetError::Timeout, false);
        check(NetError::NoConnections, false);
    }

    #[tokio::test]
    async fn names_that_mean_this_machine_or_nothing_need_no_server() {
        let names = SystemNames::new(None, ManualClock::new(Timestamp::EPOCH));
        let localhost = names.lookup("localhost").await.unwrap();
        assert!(
            localhost.iter().all(IpAddr::is_loopback) && !localhost.is_empty(),
            "{localhost:?}"
        );
        assert!(matches!(
            names.lookup("posthaste.invalid").await,
            Err(LookupError::DoesNotExist)
        ));
        names.forget();
        assert!(matches!(
            names.lookup("posthaste.invalid.").await,
            Err(LookupError::DoesNotExist)
        ));
    }
}
