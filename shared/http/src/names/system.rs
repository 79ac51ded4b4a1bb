//! Name servers and hosts file of the system, or a single name server. Hickory is used because it
//! tells an authoritative "no such name" from a failure; `getaddrinfo` mixes the two.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::parse_resolv_conf;
use hickory_resolver::{ResolverBuilder, TokioResolver};
use parking_lot::Mutex;
use posthaste_ports::Clock;

use super::families::both_families;
use super::hosts::HostsFile;
use super::system_files::{SystemFile, SystemFiles};
use super::{LookupError, NameLookup};

/// Time between looks at the files of the system. With the time for which a name is kept it is less
/// than a minute.
const FILES_LOOKED_AT_EVERY: Duration = Duration::from_secs(20);

/// Resolves by `/etc/resolv.conf` and `/etc/hosts`, or by one name server alone. The files are read
/// when the first name is looked up, and again when they have changed.
///
/// Without a readable `resolv.conf` only the hosts file answers; one that becomes unreadable leaves
/// the servers as they were. Names under `localhost` and `invalid` are never sent to a server,
/// because their meaning is fixed (RFC 6761). Search domains are not tried: an endpoint's name is a
/// full name, and `billing.example.com` must not become `billing.example.com.cluster.local`.
///
/// Both address families are looked up side by side. Once the answer about IPv4 is there, the one
/// about IPv6 gets a quarter of a second more, so that a name server that is silent about IPv6 does
/// not delay every attempt (RFC 8305, section 3). Once there are IPv6 addresses, the answer about
/// IPv4 gets two seconds more.
pub struct SystemNames<C> {
    clock: C,
    source: NameSource,
    configured: Mutex<Option<ConfiguredNames>>,
}

/// The place that says which servers are asked.
enum NameSource {
    Server(SocketAddr),
    Files(SystemFiles),
}

/// The configuration that was read, and the time at which it was last compared with the files.
struct ConfiguredNames {
    names: Arc<NameResolvers>,
    looked_at: Duration,
    resolv_conf: SystemFile,
    hosts: SystemFile,
}

/// Resolvers and hosts file. There is a resolver for each address family: hickory's own look-up of
/// both waits for the slower one.
struct NameResolvers {
    v4: TokioResolver,
    v6: TokioResolver,
    servers: ServerSettings,
    hosts: HostsFile,
}

/// Name servers, and how they are asked.
#[derive(Clone)]
struct ServerSettings {
    config: ResolverConfig,
    options: ResolverOpts,
}

impl<C> SystemNames<C> {
    /// Asks this name server and nothing else; without one, the servers of the system's
    /// configuration.
    pub fn new(server: Option<SocketAddr>, clock: C) -> Self {
        let source = match server {
            Some(server) => NameSource::Server(server),
            None => NameSource::Files(SystemFiles::default()),
        };
        Self::from_source(source, clock)
    }

    fn from_source(source: NameSource, clock: C) -> Self {
        Self {
            clock,
            source,
            configured: Mutex::default(),
        }
    }
}

impl<C: Clock> SystemNames<C> {
    fn current_resolvers(&self) -> Result<Arc<NameResolvers>, NetError> {
        let now = self.clock.monotonic();
        let mut configured = self.configured.lock();
        let former = configured.take();
        let current = match (&self.source, former) {
            (NameSource::Server(server), None) => ConfiguredNames {
                names: Arc::new(NameResolvers::new(
                    ServerSettings::single_server(*server),
                    HostsFile::default(),
                )?),
                looked_at: now,
                resolv_conf: SystemFile::default(),
                hosts: SystemFile::default(),
            },
            (NameSource::Files(files), None) => ConfiguredNames::read_files(files, None, now)?,
            (NameSource::Files(files), Some(former)) if former.is_due(now) => {
                if former.is_current(files) {
                    ConfiguredNames {
                        looked_at: now,
                        ..former
                    }
                } else {
                    tracing::info!("the name servers or the hosts file of the system changed");
                    ConfiguredNames::read_files(files, Some(&former.names), now)?
                }
            }
            (_, Some(former)) => former,
        };
        Ok(Arc::clone(&configured.insert(current).names))
    }
}

impl ConfiguredNames {
    /// Reads the files. If the servers cannot be read, the former ones are asked.
    fn read_files(
        files: &SystemFiles,
        former: Option<&NameResolvers>,
        now: Duration,
    ) -> Result<Self, NetError> {
        let resolv_conf = SystemFile::read(&files.resolv_conf);
        let hosts = SystemFile::read(&files.hosts);
        let servers = resolv_conf
            .text
            .as_deref()
            .map_err(|error| NetError::from(std::io::Error::from(error.kind())))
            .and_then(parse_resolv_conf);
        let servers = match (servers, former) {
            (Ok((config, options)), _) => ServerSettings { config, options },
            (Err(error), Some(former)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "no resolver configuration any more: the former one is used"
                );
                former.servers.clone()
            }
            (Err(error), None) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "no resolver configuration: only the hosts file is used"
                );
                ServerSettings::without_servers()
            }
        };
        let known = HostsFile::parse(hosts.text.as_deref().unwrap_or_default());
        Ok(Self {
            names: Arc::new(NameResolvers::new(servers, known)?),
            looked_at: now,
            resolv_conf,
            hosts,
        })
    }

    fn is_due(&self, now: Duration) -> bool {
        now.saturating_sub(self.looked_at) >= FILES_LOOKED_AT_EVERY
    }

    fn is_current(&self, files: &SystemFiles) -> bool {
        self.resolv_conf.is_same(&files.resolv_conf) && self.hosts.is_same(&files.hosts)
    }
}

impl ServerSettings {
    fn without_servers() -> Self {
        Self::for_servers(Vec::new())
    }

    /// Over UDP, and over TCP where an answer does not fit.
    fn single_server(address: SocketAddr) -> Self {
        let mut server = NameServerConfig::udp_and_tcp(address.ip());
        for connection in &mut server.connections {
            connection.port = address.port();
        }
        Self::for_servers(vec![server])
    }

    fn for_servers(servers: Vec<NameServerConfig>) -> Self {
        Self {
            config: ResolverConfig::from_parts(None, Vec::new(), servers),
            options: ResolverOpts::default(),
        }
    }
}

impl NameResolvers {
    fn new(servers: ServerSettings, hosts: HostsFile) -> Result<Self, NetError> {
        Ok(Self {
            v4: build(servers.clone(), LookupIpStrategy::Ipv4Only)?,
            v6: build(servers.clone(), LookupIpStrategy::Ipv6Only)?,
            servers,
            hosts,
        })
    }
}

impl<C: Clock> NameLookup for SystemNames<C> {
    async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let names = self.current_resolvers().map_err(to_lookup_error)?;
        if let Some(addresses) = names.hosts.addresses(host) {
            return Ok(addresses);
        }
        let name = full_name(host).map_err(|error| to_lookup_error(error.into()))?;
        both_families(
            lookup_family(&names.v4, &name),
            lookup_family(&names.v6, &name),
            &self.clock,
        )
        .await
    }

    fn forget_all(&self) {
        *self.configured.lock() = None;
    }
}

/// The name as it is written, byte for byte. Hickory's own reading of a text follows IDNA, which
/// the parser of the URL has done already, and refuses what DNS allows and people use (RFC 2181,
/// section 11), such as `my_service`.
fn full_name(host: &str) -> Result<Name, ProtoError> {
    let labels = host.trim_end_matches('.').split('.').map(str::as_bytes);
    let mut name = Name::from_labels(labels)?;
    name.set_fqdn(true);
    Ok(name)
}

fn lookup_family<'a>(
    resolver: &'a TokioResolver,
    name: &'a Name,
) -> BoxFuture<'a, Result<Vec<IpAddr>, LookupError>> {
    // Boxed: hickory's look-up is several kilobytes large.
    Box::pin(async move {
        let answer = resolver
            .lookup_ip(name.clone())
            .await
            .map_err(to_lookup_error)?;
        Ok(answer.iter().collect())
    })
}

fn build(servers: ServerSettings, family: LookupIpStrategy) -> Result<TokioResolver, NetError> {
    let ServerSettings { config, options } = servers;
    let provider = TokioRuntimeProvider::default();
    let mut builder: ResolverBuilder<_> = TokioResolver::builder_with_config(config, provider);
    let built = builder.options_mut();
    *built = options;
    built.ip_strategy = family;
    // The client's own cache decides how long an answer is used, and can be flushed.
    built.cache_size = 0;
    built.use_hosts_file = ResolveHosts::Never;
    builder.build()
}

fn to_lookup_error(error: NetError) -> LookupError {
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
                matches!(to_lookup_error(error), LookupError::DoesNotExist),
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
        names.forget_all();
        assert!(matches!(
            names.lookup("posthaste.invalid.").await,
            Err(LookupError::DoesNotExist)
        ));
    }

    #[test]
    fn name_is_asked_for_as_it_is_written() {
        let check = |host: &str, expected: &[&str]| {
            let name = full_name(host).unwrap();
            let labels: Vec<_> = name
                .iter()
                .map(|label| String::from_utf8_lossy(label))
                .collect();
            assert_eq!(labels, expected, "{host}");
            assert!(name.is_fqdn(), "{host}");
        };
        check("hooks.example", &["hooks", "example"]);
        check("hooks.example.", &["hooks", "example"]);
        check("my_service", &["my_service"]);
        check("a_.-b-.example", &["a_", "-b-", "example"]);
        check("*.example", &["*", "example"]);
        check("xn--bcher-kva.example", &["xn--bcher-kva", "example"]);
        check("xn--a.example", &["xn--a", "example"]);
        check("a$b~c.example", &["a$b~c", "example"]);
        assert!(full_name(&"a".repeat(64)).is_err());
    }

    /// The files of a system in a folder of their own, and a resolver by them.
    struct System {
        folder: tempfile::TempDir,
        clock: ManualClock,
        names: SystemNames<ManualClock>,
    }

    impl System {
        fn new(resolv_conf: Option<&str>, hosts: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let clock = ManualClock::new(Timestamp::EPOCH);
            let path = |name: &str| folder.path().join(name).into_boxed_path();
            let files = SystemFiles {
                resolv_conf: path("resolv.conf"),
                hosts: path("hosts"),
            };
            let names = SystemNames::from_source(NameSource::Files(files), clock.clone());
            let system = Self {
                folder,
                clock,
                names,
            };
            if let Some(text) = resolv_conf {
                system.write("resolv.conf", text);
            }
            system.write("hosts", hosts);
            system
        }

        fn write(&self, file: &str, text: &str) {
            std::fs::write(self.folder.path().join(file), text).unwrap();
        }

        /// Replaces a file by another, as editors and orchestrators do.
        fn replace(&self, file: &str, text: &str) {
            let new = self.folder.path().join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, self.folder.path().join(file)).unwrap();
        }

        fn servers(&self) -> Vec<String> {
            let names = self.names.current_resolvers().unwrap();
            let servers = names.servers.config.name_servers();
            servers.iter().map(|server| server.ip.to_string()).collect()
        }

        async fn address(&self, host: &str) -> Option<String> {
            let addresses = self.names.lookup(host).await.ok()?;
            addresses.first().map(IpAddr::to_string)
        }
    }

    #[tokio::test]
    async fn changed_files_are_used_within_the_time_between_looks() {
        let system = System::new(Some("nameserver 192.0.2.1\n"), "10.0.0.1 one\n");
        assert_eq!(system.servers(), ["192.0.2.1"]);
        assert_eq!(system.address("one").await.unwrap(), "10.0.0.1");
        system.write("resolv.conf", "nameserver 192.0.2.2\n");
        system.replace("hosts", "10.0.0.2 one\n");
        system
            .clock
            .advance(FILES_LOOKED_AT_EVERY.saturating_sub(Duration::from_millis(1)));
        assert_eq!(system.servers(), ["192.0.2.1"]);
        assert_eq!(system.address("one").await.unwrap(), "10.0.0.1");
        system.clock.advance(Duration::from_millis(1));
        assert_eq!(system.servers(), ["192.0.2.2"]);
        assert_eq!(system.address("one").await.unwrap(), "10.0.0.2");
        // Of the same length, in place.
        system.write("hosts", "10.0.0.3 one\n");
        system.clock.advance(FILES_LOOKED_AT_EVERY);
        assert_eq!(system.address("one").await.unwrap(), "10.0.0.3");
        std::fs::remove_file(system.folder.path().join("hosts")).unwrap();
        system.write("resolv.conf", "# no server yet\n");
        system.clock.advance(FILES_LOOKED_AT_EVERY);
        assert_eq!(system.servers(), ["192.0.2.2"]);
        system.write("hosts", "10.0.0.4 one\n");
        system.clock.advance(FILES_LOOKED_AT_EVERY);
        assert_eq!(system.address("one").await.unwrap(), "10.0.0.4");
        let kept = FILES_LOOKED_AT_EVERY + crate::settings::NAMES_KEPT_DEFAULT;
        assert!(kept < Duration::from_mins(1));
    }

    #[tokio::test]
    async fn files_that_stay_are_not_read_again() {
        let system = System::new(None, "10.0.0.1 one my_service\n");
        let before = system.names.current_resolvers().unwrap();
        system.clock.advance(FILES_LOOKED_AT_EVERY);
        assert!(Arc::ptr_eq(
            &before,
            &system.names.current_resolvers().unwrap()
        ));
        assert_eq!(system.servers(), Vec::<String>::new());
        assert_eq!(system.address("my_service").await.unwrap(), "10.0.0.1");
    }
}
