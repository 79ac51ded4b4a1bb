//! The address ranges a webhook never goes to unless the allow-list names them, after IANA's
//! registries of special purpose addresses (<https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

const REFUSED_V4: [(Ipv4Net, &str); 17] = [
    (ipv4_net([0, 0, 0, 0], 8), "this network"),
    (ipv4_net([10, 0, 0, 0], 8), "private use"),
    (
        ipv4_net([100, 64, 0, 0], 10),
        "shared address space of carriers",
    ),
    (ipv4_net([127, 0, 0, 0], 8), "loopback"),
    // Azure's host node: a public number that only its own virtual machines reach.
    // <https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16>
    (ipv4_net([168, 63, 129, 16], 32), "platform of the cloud"),
    (ipv4_net([169, 254, 0, 0], 16), "link-local, cloud metadata"),
    (ipv4_net([172, 16, 0, 0], 12), "private use"),
    (ipv4_net([192, 0, 0, 0], 24), "protocol assignments"),
    (ipv4_net([192, 0, 2, 0], 24), "documentation"),
    (ipv4_net([192, 88, 99, 0], 24), "6to4 relay"),
    (ipv4_net([192, 168, 0, 0], 16), "private use"),
    (ipv4_net([198, 18, 0, 0], 15), "benchmarking"),
    (ipv4_net([198, 51, 100, 0], 24), "documentation"),
    (ipv4_net([203, 0, 113, 0], 24), "documentation"),
    (ipv4_net([224, 0, 0, 0], 4), "multicast"),
    (ipv4_net([255, 255, 255, 255], 32), "broadcast"),
    (ipv4_net([240, 0, 0, 0], 4), "reserved"),
];

/// Global unicast; everything else (loopback, unique local, link-local, multicast, `fd00:ec2::254`)
/// lies outside of it. So do IPv4-mapped addresses and those of NAT64, which are judged by the IPv4
/// address that they carry.
const GLOBAL_UNICAST: Ipv6Net = ipv6_net([0x2000, 0, 0], 3);

const REFUSED_V6: [(Ipv6Net, &str); 5] = [
    (ipv6_net([0x2001, 0, 0], 32), "Teredo"),
    // Benchmarking, ORCHID, ORCHIDv2, drone ids and what else the IETF assigns.
    (ipv6_net([0x2001, 0, 0], 23), "protocol assignments"),
    (ipv6_net([0x2001, 0xdb8, 0], 32), "documentation"),
    (ipv6_net([0x2002, 0, 0], 16), "6to4"),
    (ipv6_net([0x3fff, 0, 0], 20), "documentation"),
];

/// The range that refuses `address`, or `None` for a public one. Where ranges nest, the first
/// listed is named.
pub(super) fn refusing_range(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => REFUSED_V4
            .iter()
            .find(|(net, _)| net.contains(&v4))
            .map(|(_, name)| *name),
        IpAddr::V6(v6) if !GLOBAL_UNICAST.contains(&v6) => Some("outside 2000::/3"),
        IpAddr::V6(v6) => REFUSED_V6
            .iter()
            .find(|(net, _)| net.contains(&v6))
            .map(|(_, name)| *name),
    }
}

const fn ipv4_net(octets: [u8; 4], prefix_bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(
        Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]),
        prefix_bits,
    )
}

const fn ipv6_net(head: [u16; 3], prefix_bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(
        Ipv6Addr::new(head[0], head[1], head[2], 0, 0, 0, 0, 0),
        prefix_bits,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(expected: Option<&str>, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(
                refusing_range(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }

    #[test]
    fn addresses_around_every_v4_range_are_public() {
        check(
            None,
            &[
                "1.0.0.0",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
                "168.63.129.15",
                "168.63.129.17",
                "169.253.255.255",
                "169.255.0.0",
                "172.15.255.255",
                "172.32.0.0",
                "191.255.255.255",
                "192.0.1.0",
                "192.0.3.0",
                "192.88.98.255",
                "192.88.100.0",
                "192.167.255.255",
                "192.169.0.0",
                "198.17.255.255",
                "198.20.0.0",
                "198.51.99.255",
                "198.51.101.0",
                "203.0.112.255",
                "203.0.114.0",
                "223.255.255.255",
            ],
        );
    }

    #[test]
    fn the_ends_of_every_v4_range_are_refused() {
        check(Some("this network"), &["0.0.0.0", "0.255.255.255"]);
        check(
            Some("private use"),
            &[
                "10.0.0.0",
                "10.255.255.255",
                "172.16.0.0",
                "172.31.255.255",
                "192.168.0.0",
                "192.168.255.255",
            ],
        );
        check(
            Some("shared address space of carriers"),
            &["100.64.0.0", "100.100.100.200", "100.127.255.255"],
        );
        check(
            Some("loopback"),
            &["127.0.0.0", "127.0.0.1", "127.255.255.255"],
        );
        check(Some("platform of the cloud"), &["168.63.129.16"]);
        check(
            Some("link-local, cloud metadata"),
            &[
                "169.254.0.0",
                "169.254.169.254",
                "169.254.170.2",
                "169.254.255.255",
            ],
        );
        check(
            Some("protocol assignments"),
            &["192.0.0.0", "192.0.0.192", "192.0.0.255"],
        );
        check(
            Some("documentation"),
            &[
                "192.0.2.0",
                "192.0.2.255",
                "198.51.100.0",
                "198.51.100.255",
                "203.0.113.0",
                "203.0.113.255",
            ],
        );
        check(Some("6to4 relay"), &["192.88.99.0", "192.88.99.255"]);
        check(Some("benchmarking"), &["198.18.0.0", "198.19.255.255"]);
        check(
            Some("multicast"),
            &["224.0.0.0", "233.252.0.1", "239.255.255.255"],
        );
        check(Some("reserved"), &["240.0.0.0", "255.255.255.254"]);
        check(Some("broadcast"), &["255.255.255.255"]);
    }

    /// IPv6 addresses are public only in global unicast, without its special ranges.
    #[test]
    fn only_global_unicast_ipv6_is_public() {
        check(
            None,
            &[
                "2001:200::1",
                "2001:db7:ffff::1",
                "2001:db9::1",
                "2003::1",
                "2606:2800:21f::1",
                "2a00::1",
                "3fff:1000::",
            ],
        );
        check(
            Some("outside 2000::/3"),
            &[
                "::",
                "::1",
                "::7f00:1",
                "::ffff:8.8.8.8",
                "64:ff9b::808:808",
                "64:ff9b:1::1",
                "100::1",
                "1fff:ffff::",
                "4000::",
                "5f00::1",
                "fc00::1",
                "fd00:ec2::254",
                "fe80::1",
                "fec0::1",
                "ff02::1",
            ],
        );
        check(Some("Teredo"), &["2001::", "2001:0:ffff::1"]);
        check(
            Some("protocol assignments"),
            &[
                "2001:2::1",
                "2001:10::1",
                "2001:20::1",
                "2001:30::1",
                "2001:1ff:ffff::",
            ],
        );
        check(
            Some("documentation"),
            &[
                "2001:db8::1",
                "2001:db8:ffff::",
                "3fff::",
                "3fff:fff:ffff::1",
            ],
        );
        check(Some("6to4"), &["2002::", "2002:808:808::1"]);
    }

    /// Every v4 address in the forms in which v6 carries it.
    fn carried(v4: Ipv4Addr) -> [Ipv6Addr; 5] {
        let [a, b, c, d] = v4.octets();
        let high = u16::from_be_bytes([a, b]);
        let low = u16::from_be_bytes([c, d]);
        [
            v4.to_ipv6_mapped(),
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
        ]
    }

    proptest! {
        #[test]
        fn nothing_outside_2000_3_is_public(bits: u128) {
            let address = Ipv6Addr::from(bits);
            if address.segments()[0] >> 13 != 1 {
                prop_assert_eq!(refusing_range(address.into()), Some("outside 2000::/3"));
            }
        }

        #[test]
        fn no_v4_address_is_public_in_a_form_of_v6(bits: u32) {
            for form in carried(Ipv4Addr::from(bits)) {
                prop_assert!(refusing_range(form.into()).is_some(), "{form}");
            }
        }

        #[test]
        fn what_the_standard_library_knows_as_special_is_refused(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let is_special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
            if is_special {
                prop_assert!(refusing_range(v4.into()).is_some(), "{v4}");
            }
        }
    }
}
