//! The public-address rule: which schemes, ports and addresses a webhook may go to. The rule only
//! decides; the client resolves names and connects to vetted addresses.

mod embedded;
mod ranges;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use self::embedded::EmbeddedIpv4;
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
    /// An address of IPv6 that carries one of IPv4 which is not public, and not in the allow-list.
    #[error(
        "the address {address} leads to {carried}, which is not public ({range}); \
            `--allow-endpoints` opens such (on AWS: AllowEndpoints)"
    )]
    Carried {
        /// The address.
        address: Ipv6Addr,
        /// The address that it carries.
        carried: Ipv4Addr,
        /// The range in which that lies, in the words of its registry.
        range: &'static str,
    },
    /// No address at all: none was vetted, so none is allowed.
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
    /// The allow-list. An IPv6 address that carries one of IPv4 is judged by that one: a range of
    /// NAT64 in the list opens no private address behind it, and `10.0.0.0/8` opens its forms in
    /// IPv6 as well.
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
    /// Whether an attempt over `link` may go to its host's `addresses`, which are all results of
    /// its resolution. One refused address refuses the attempt.
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

    /// The addresses of a host that needs no resolver: a literal's own, and loopback for
    /// `localhost` names (RFC 6761). Where the allow-list holds one of the two loopback addresses,
    /// that one alone: `127.0.0.0/8` is enough to reach `localhost`, without `::1`. Not vetted yet.
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
        let carried = match address {
            IpAddr::V4(_) => Vec::new(),
            IpAddr::V6(address) => embedded::embedded_addresses(address),
        };
        if let IpAddr::V6(address) = address {
            self.check_embedded(address, &carried)?;
        }
        let is_any = !carried.is_empty();
        let are_carried_allowed = is_any
            && carried
                .iter()
                .all(|it| it.is_translated && self.is_allowed(it.address.into()));
        if self.is_allowed(address) || are_carried_allowed {
            return Ok(());
        }
        let is_public_translated = is_any && carried.iter().all(|it| it.is_translated);
        // The address first: no setting of scheme or port would mend this reason.
        if !is_public_translated && let Some(range) = ranges::refusing_range(address) {
            return Err(AddressRefusal::Address { address, range });
        }
        self.check_public_link(link)
    }

    /// Whether every IPv4 address that an IPv6 one carries is public, or named by the allow-list.
    fn check_embedded(
        &self,
        address: Ipv6Addr,
        known: &[EmbeddedIpv4],
    ) -> Result<(), AddressRefusal> {
        let holders = self
            .allowed
            .iter()
            .filter(|net| net.contains(&IpAddr::V6(address)));
        let under_a_prefix = holders
            .clone()
            .filter(|_| known.is_empty())
            .filter_map(|net| embedded::embedded_under(address, net.prefix_len()));
        for carried in known.iter().copied().chain(under_a_prefix) {
            let ipv4 = IpAddr::V4(carried.address);
            let mut holders = holders.clone();
            if let Some(range) = ranges::refusing_range(ipv4)
                && !self.is_allowed(ipv4)
                && !holders.any(|net| carried.is_named_by(net.prefix_len()))
            {
                return Err(AddressRefusal::Carried {
                    address,
                    carried: carried.address,
                    range,
                });
            }
        }
        Ok(())
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
    use ipnet::Ipv6Net;
    use proptest::prelude::*;

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

    fn leads_to(address: &str, carried: &str, range: &'static str) -> AddressRefusal {
        AddressRefusal::Carried {
            address: address.parse().unwrap(),
            carried: carried.parse().unwrap(),
            range,
        }
    }

    /// A network that holds every form of a kind, and the form of this address.
    fn forms(ipv4: Ipv4Addr, fill: u128) -> Vec<(Ipv6Net, Ipv6Addr)> {
        let v4 = u128::from(u32::from(ipv4));
        let net = |text: &str| text.parse::<Ipv6Net>().unwrap();
        let at_the_end = |prefix: &str| {
            let net = net(prefix);
            (net, Ipv6Addr::from(u128::from(net.addr()) | v4))
        };
        let six_to_four = Ipv6Addr::from((0x2002_u128 << 112) | (v4 << 80) | (fill >> 48));
        let inverted = u128::from(!u32::from(ipv4));
        let teredo = (0x2001_0000_u128 << 96) | (fill >> 64 << 32) | inverted;
        let mut forms = vec![
            at_the_end("::ffff:0:0/96"),
            at_the_end("::ffff:0:0:0/96"),
            at_the_end("64:ff9b::/96"),
            at_the_end("::/96"),
            at_the_end("fd00:1::200:5efe:0:0/96"),
            at_the_end("2606:1::5efe:0:0/96"),
            (net("2002::/16"), six_to_four),
            (net("2001::/32"), Ipv6Addr::from(teredo)),
        ];
        for length in [48_u8, 56, 64, 96] {
            let prefix = (0x64_ff9b_0001_u128 << 80) | (fill >> 48 & low_bits(80));
            forms.push((net("64:ff9b:1::/48"), translated(prefix, length, ipv4)));
        }
        // Prefixes of an operator's own.
        for length in [32_u8, 40, 48, 56, 64, 96] {
            for start in [0xfd00_u128, 0x2606] {
                let prefix = (start << 112) | (fill >> 16);
                let form = translated(prefix, length, ipv4);
                forms.push((Ipv6Net::new(form, length).unwrap().trunc(), form));
            }
        }
        forms
    }

    /// The address of RFC 6052 for a prefix of so many bits, of which the others are ignored.
    fn translated(prefix: u128, length: u8, ipv4: Ipv4Addr) -> Ipv6Addr {
        let mut octets = prefix.to_be_bytes();
        octets[usize::from(length / 8)..].fill(0);
        octets[8] = 0;
        let places = (usize::from(length / 8)..16).filter(|at| *at != 8);
        for (at, octet) in places.zip(ipv4.octets()) {
            octets[at] = octet;
        }
        octets.into()
    }

    fn low_bits(count: u32) -> u128 {
        (1 << count) - 1
    }

    /// Addresses of IPv4 of which many are not public.
    fn any_ipv4() -> impl Strategy<Value = Ipv4Addr> {
        let near = prop::sample::select(vec![
            "169.254.169.254",
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.9",
            "192.168.1.1",
            "100.64.0.1",
            "168.63.129.16",
            "224.0.0.1",
        ]);
        prop_oneof![
            near.prop_map(|text| text.parse().unwrap()),
            any::<u32>().prop_map(|bits| Ipv4Addr::from(bits | 0x0100_0000)),
        ]
    }

    proptest! {
        #[test]
        fn no_form_of_an_address_opens_it_and_no_range_of_forms(ipv4 in any_ipv4(), fill: u128) {
            let link = link("https://a.example/");
            let check = |allowed: Vec<IpNet>, form: Ipv6Addr| {
                let policy = AddressPolicy { allowed, ..AddressPolicy::default() };
                policy.check_addresses(&link, &[form.into()])
            };
            let is_refused = ranges::refusing_range(ipv4.into()).is_some();
            for (net, form) in forms(ipv4, fill) {
                if !is_refused {
                    continue;
                }
                prop_assert!(check(vec![net.into()], form).is_err(), "{net} {form}");
                // The list opens it by the IPv4 address, or by this form of it.
                if embedded::embedded_addresses(form).len() < 2 {
                    let both = vec![net.into(), IpNet::from(IpAddr::V4(ipv4))];
                    prop_assert_eq!(check(both, form), Ok(()), "{} {}", net, form);
                }
                let itself = IpNet::from(IpAddr::V6(form));
                prop_assert_eq!(check(vec![itself], form), Ok(()), "{}", form);
            }
        }

        #[test]
        fn translated_form_of_a_public_address_needs_no_list(bits: u32) {
            let ipv4 = Ipv4Addr::from(bits | 0x0100_0000);
            let link = link("https://a.example/");
            let is_public = ranges::refusing_range(ipv4.into()).is_none();
            for prefix in ["::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::"] {
                let prefix = u128::from(prefix.parse::<Ipv6Addr>().unwrap());
                let form = Ipv6Addr::from(prefix | u128::from(u32::from(ipv4)));
                let checked = AddressPolicy::default().check_addresses(&link, &[form.into()]);
                prop_assert_eq!(checked.is_ok(), is_public, "{}", form);
            }
        }
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
    fn single_refused_address_refuses_the_attempt() {
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

    /// The allow-list opens plain HTTP and any port, but only to its own addresses.
    #[test]
    fn allow_list_opens_plain_http_and_any_port_of_its_addresses() {
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
    fn a_mapped_address_is_allowed_where_its_ipv4_address_is() {
        let mapped = ["::ffff:127.0.0.1"];
        let check = |net, expected| {
            assert_eq!(
                attempt(&[net], "http://a.example/", &mapped),
                expected,
                "{net}"
            );
        };
        let refused = Err(leads_to("::ffff:127.0.0.1", "127.0.0.1", "loopback"));
        check("127.0.0.0/8", Ok(()));
        check("10.0.0.0/8", refused);
        check("::1/128", refused);
        check("::ffff:0.0.0.0/96", refused);
        check("::/0", refused);
        check("::ffff:127.0.0.0/104", Ok(()));
    }

    #[test]
    fn dns64_form_of_a_public_address_is_as_public() {
        let both = [PUBLIC, "64:ff9b::93.184.215.14"];
        assert_eq!(attempt(&[], "https://a.example/", &both), Ok(()));
        assert_eq!(
            attempt(&[], "http://a.example/", &both),
            Err(AddressRefusal::PlainHttp)
        );
        assert_eq!(
            attempt(&[], "https://a.example:9200/", &both),
            Err(AddressRefusal::Port(9200))
        );
        let metadata = ["169.254.169.254", "64:ff9b::169.254.169.254"];
        let range = "link-local, cloud metadata";
        assert_eq!(
            attempt(&[], "https://a.example/", &metadata[1..]),
            Err(leads_to(metadata[1], metadata[0], range))
        );
        // On a network with DNS64 a name of one's own has both.
        let own = ["10.0.0.1", "64:ff9b::10.0.0.1"];
        assert_eq!(attempt(&["10.0.0.0/8"], "http://a.example/", &own), Ok(()));
    }

    #[test]
    fn tunnel_is_no_way_to_a_public_address() {
        for (address, range) in [
            ("2002:5db8:d70e::1", "6to4"),
            ("2001::1:a247:28f1", "Teredo"),
            ("::93.184.215.14", "outside 2000::/3"),
            ("fe80::5efe:93.184.215.14", "outside 2000::/3"),
        ] {
            let attempt = |allowed| attempt(allowed, "https://a.example/", &[address]);
            assert_eq!(attempt(&[]), refused(address, range));
            assert_eq!(attempt(&["93.184.215.14/32"]), refused(address, range));
            assert_eq!(attempt(&["::/0"]), Ok(()), "{address}");
        }
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
            Err(leads_to("::ffff:10.0.0.1", "10.0.0.1", "private use")),
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
