//! The public-address rule: which schemes, ports and addresses a webhook may go to. It decides;
//! resolving names and connecting to what was vetted is the client's.

mod ranges;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::model::endpoint::Link;

/// Ports an endpoint may have outside the allow-list.
pub(crate) const PORTS_DEFAULT: [u16; 3] = [443, 80, 8443];

/// Why an endpoint, or an attempt at it, is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefusal {
    /// Plain `http` to an address outside the allow-list.
    #[error(
        "plain http is allowed only to addresses that `--allow-endpoints` opens (on AWS: AllowEndpoints)"
    )]
    PlainHttp,
    /// A port that is not open outside the allow-list.
    #[error(
        "port {0} is allowed only to addresses that `--allow-endpoints` opens (on AWS: AllowEndpoints)"
    )]
    Port(u16),
    /// An address that is not public, and not in the allow-list.
    #[error(
        "the address {address} is not public ({range}); `--allow-endpoints` opens such (on AWS: \
            AllowEndpoints)"
    )]
    Address {
        /// The address.
        address: IpAddr,
        /// The range it lies in, in the words of its registry.
        range: &'static str,
    },
    /// No address at all: nothing was vetted, so nothing is allowed.
    #[error("the host has no address")]
    NoAddress,
}

/// The addresses and ports that webhooks may go to.
///
/// Public addresses are reached over `https` and an open port. Addresses of the allow-list are
/// reached over plain `http` and any port too, but only if *every* address of the host is in the
/// allow-list: otherwise a name with one allowed and one public address would carry plain http out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressPolicy {
    /// The allow-list. An address is judged in the form in which it came: `::ffff:127.0.0.1` is
    /// not in `127.0.0.0/8`, so that no form of an address opens more than the operator
    /// spelled out.
    pub allowed: Vec<IpNet>,
    /// The ports that are open to public addresses.
    pub ports: Vec<u16>,
}

impl Default for AddressPolicy {
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            ports: PORTS_DEFAULT.to_vec(),
        }
    }
}

impl AddressPolicy {
    /// Whether an attempt over `link` may go to its host's `addresses`, which are all that
    /// resolution answered. One refused address refuses the attempt.
    pub fn check_addresses(&self, link: &Link, addresses: &[IpAddr]) -> Result<(), AddressRefusal> {
        if addresses.is_empty() {
            return Err(AddressRefusal::NoAddress);
        }
        addresses
            .iter()
            .try_for_each(|address| self.check_address(link, *address))
    }

    /// Whether an endpoint on `link` may be registered, before any name is resolved. What a name
    /// resolves to is looked at again at every attempt; a plain-http or odd-port endpoint with
    /// a name is let in only where an allow-list could allow it.
    pub fn check_link(&self, link: &Link) -> Result<(), AddressRefusal> {
        if let Some(addresses) = self.known_addresses(link) {
            return self.check_addresses(link, &addresses);
        }
        if self.allowed.is_empty() {
            self.check_public_link(link)
        } else {
            Ok(())
        }
    }

    /// The addresses of a host that no resolver is asked about: a literal's own, and loopback for
    /// `localhost` names (RFC 6761). Where the allow-list holds one of the two loopback
    /// addresses, that one alone: whoever opens `127.0.0.0/8` need not open `::1` as well to
    /// reach `localhost`. Not vetted yet.
    pub fn known_addresses(&self, link: &Link) -> Option<Vec<IpAddr>> {
        if let Ok(address) = link.host.parse() {
            return Some(vec![address]);
        }
        if !is_localhost(&link.host) {
            return None;
        }
        let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let allowed: Vec<_> = loopback
            .into_iter()
            .filter(|address| self.is_allowed(*address))
            .collect();
        Some(if allowed.is_empty() {
            loopback.to_vec()
        } else {
            allowed
        })
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|net| net.contains(&address))
    }

    fn check_address(&self, link: &Link, address: IpAddr) -> Result<(), AddressRefusal> {
        if self.is_allowed(address) {
            return Ok(());
        }
        // The address first: it is the reason that no setting of scheme or port would mend.
        if let Some(range) = ranges::refused(address) {
            return Err(AddressRefusal::Address { address, range });
        }
        self.check_public_link(link)
    }

    fn check_public_link(&self, link: &Link) -> Result<(), AddressRefusal> {
        if !link.is_tls {
            return Err(AddressRefusal::PlainHttp);
        }
        if !self.ports.contains(&link.port) {
            return Err(AddressRefusal::Port(link.port));
        }
        Ok(())
    }
}

/// Whether a host name is one of loopback (RFC 6761).
pub(crate) fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::endpoint::EndpointUrl;

    const PUBLIC: &str = "93.184.215.14";

    fn policy(allowed: &[&str]) -> AddressPolicy {
        AddressPolicy {
            allowed: allowed.iter().map(|net| net.parse().unwrap()).collect(),
            ..AddressPolicy::default()
        }
    }

    fn link(url: &str) -> Link {
        EndpointUrl::parse(url).unwrap().link()
    }

    fn attempt(allowed: &[&str], url: &str, addresses: &[&str]) -> Result<(), AddressRefusal> {
        let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
        policy(allowed).check_addresses(&link(url), &addresses)
    }

    fn refused(address: &str, range: &'static str) -> Result<(), AddressRefusal> {
        Err(AddressRefusal::Address {
            address: address.parse().unwrap(),
            range,
        })
    }

    #[test]
    fn public_addresses_are_reached_over_https_and_an_open_port() {
        let check = |url, expected| assert_eq!(attempt(&[], url, &[PUBLIC]), expected, "{url}");
        check("https://a.example/", Ok(()));
        check("https://a.example:8443/", Ok(()));
        check("https://a.example:80/", Ok(()));
        check("https://a.example:9200/", Err(AddressRefusal::Port(9200)));
        check("http://a.example/", Err(AddressRefusal::PlainHttp));
        check("http://a.example:443/", Err(AddressRefusal::PlainHttp));
    }

    #[test]
    fn one_refused_address_refuses_the_attempt() {
        let check = |addresses: &[&str], expected| {
            assert_eq!(
                attempt(&[], "https://a.example/", addresses),
                expected,
                "{addresses:?}"
            );
        };
        check(&[PUBLIC, "2606:2800:21f::1"], Ok(()));
        check(&[PUBLIC, "10.0.0.1"], refused("10.0.0.1", "private use"));
        check(
            &["169.254.169.254", PUBLIC],
            refused("169.254.169.254", "link-local, cloud metadata"),
        );
        check(&[], Err(AddressRefusal::NoAddress));
    }

    #[test]
    fn the_allow_list_opens_plain_http_and_any_port_to_its_own_addresses() {
        let check = |url, addresses: &[&str], expected| {
            assert_eq!(
                attempt(&["127.0.0.0/8"], url, addresses),
                expected,
                "{url} {addresses:?}"
            );
        };
        check("http://sink.example:9000/", &["127.0.0.1"], Ok(()));
        check(
            "https://sink.example:9000/",
            &["127.0.0.1", "127.0.0.2"],
            Ok(()),
        );
        check(
            "http://sink.example/",
            &["127.0.0.1", PUBLIC],
            Err(AddressRefusal::PlainHttp),
        );
        check(
            "https://sink.example:9000/",
            &["127.0.0.1", PUBLIC],
            Err(AddressRefusal::Port(9000)),
        );
        check("https://sink.example/", &["127.0.0.1", PUBLIC], Ok(()));
        check(
            "http://sink.example/",
            &["10.0.0.1"],
            refused("10.0.0.1", "private use"),
        );
    }

    #[test]
    fn a_mapped_address_is_allowed_only_where_its_own_net_is() {
        let mapped = ["::ffff:127.0.0.1"];
        let check = |net, expected| {
            assert_eq!(
                attempt(&[net], "http://a.example/", &mapped),
                expected,
                "{net}"
            );
        };
        check(
            "127.0.0.0/8",
            refused("::ffff:127.0.0.1", "outside 2000::/3"),
        );
        check("::1/128", refused("::ffff:127.0.0.1", "outside 2000::/3"));
        check("::ffff:127.0.0.0/104", Ok(()));
    }

    #[test]
    fn localhost_is_the_loopback_addresses_that_are_allowed() {
        let check = |allowed: &[&str], expected: Option<&[&str]>| {
            let expected = expected.map(|all| {
                all.iter()
                    .map(|a| a.parse().unwrap())
                    .collect::<Vec<IpAddr>>()
            });
            assert_eq!(
                policy(allowed).known_addresses(&link("http://localhost:9000/")),
                expected,
                "{allowed:?}"
            );
        };
        check(&[], Some(&["127.0.0.1", "::1"]));
        check(&["127.0.0.0/8"], Some(&["127.0.0.1"]));
        check(&["::1/128"], Some(&["::1"]));
        check(&["127.0.0.0/8", "::1/128"], Some(&["127.0.0.1", "::1"]));
        assert_eq!(
            policy(&["127.0.0.0/8"]).known_addresses(&link("https://notlocalhost/")),
            None
        );
    }

    #[test]
    fn a_bad_endpoint_is_refused_at_the_door() {
        let check = |allowed: &[&str], url, expected| {
            assert_eq!(policy(allowed).check_link(&link(url)), expected, "{url}");
        };
        check(&[], "https://billing.example.com/hooks", Ok(()));
        check(
            &[],
            "http://billing.example.com/hooks",
            Err(AddressRefusal::PlainHttp),
        );
        check(
            &[],
            "https://billing.example.com:22/",
            Err(AddressRefusal::Port(22)),
        );
        check(&[], "https://127.0.0.1/", refused("127.0.0.1", "loopback"));
        // The URL parser reads every spelling of an IPv4 address.
        check(&[], "https://0x7f.1/", refused("127.0.0.1", "loopback"));
        check(&[], "https://2130706433/", refused("127.0.0.1", "loopback"));
        check(
            &[],
            "https://[::ffff:10.0.0.1]/",
            refused("::ffff:10.0.0.1", "outside 2000::/3"),
        );
        check(&[], "https://localhost/", refused("127.0.0.1", "loopback"));
        check(
            &[],
            "https://api.localhost./",
            refused("127.0.0.1", "loopback"),
        );
        check(&["127.0.0.0/8"], "http://localhost:9000/", Ok(()));
        check(&["::1/128"], "http://localhost:9000/", Ok(()));
        check(&["127.0.0.0/8"], "http://127.0.0.1:9000/", Ok(()));
        check(&["127.0.0.0/8"], "http://sink.example:9000/", Ok(()));
        check(
            &["127.0.0.0/8"],
            "http://93.184.215.14/",
            Err(AddressRefusal::PlainHttp),
        );
    }
}
