//! IPv4 addresses inside IPv6 ones. A packet to such an address ends at the IPv4 address, so that
//! is the one to judge.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Prefixes of IPv4 embedded in IPv6, by their lengths in bits (RFC 6052, section 2.2).
const PREFIX_LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

/// The lengths that a translator may choose inside `64:ff9b:1::/48` (RFC 8215, section 5). An
/// address does not show which it is, so each is looked at.
const LOCAL_USE_LENGTHS: [u8; 4] = [48, 56, 64, 96];

/// The octet that is zero in every form of RFC 6052 and no part of the IPv4 address.
const RESERVED_OCTET: usize = 8;

/// Bits of an IPv4 address that a network has to fix to name it: the shortest network that is
/// allocated by itself has as many (<https://www.iana.org/assignments/ipv4-address-space>).
const NAMING_BITS: u8 = 8;

/// An IPv4 address that an IPv6 address carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EmbeddedIpv4 {
    /// The IPv4 address.
    pub(super) address: Ipv4Addr,
    /// The number of bits before it.
    first_bit: u8,
    /// Whether a translator makes an IPv4 packet of it. If not, a tunnel has its end there.
    pub(super) is_translated: bool,
}

impl EmbeddedIpv4 {
    /// Whether a network that holds the IPv6 address, with a prefix of so many bits, names the IPv4
    /// address, and not the way to all of them.
    pub(super) fn is_named_by(self, prefix_bits: u8) -> bool {
        prefix_bits >= self.first_bit + NAMING_BITS
    }
}

/// The IPv4 addresses that an address carries in the well-known forms. There is more than one only
/// in the range for local use.
pub(super) fn embedded_addresses(address: Ipv6Addr) -> Vec<EmbeddedIpv4> {
    let octets = address.octets();
    let last = at_length(octets, 96);
    match address.segments() {
        // IPv4-mapped: the system itself speaks IPv4. IPv4-translated (RFC 7915) and NAT64.
        [0, 0, 0, 0, 0, 0xffff, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![last],
        [0x64, 0xff9b, 1, ..] => LOCAL_USE_LENGTHS
            .map(|length| at_length(octets, length))
            .into_iter()
            .filter(|carried| is_a_host(carried.address))
            .collect(),
        // IPv4-compatible, but for `::` and `::1`, which carry none.
        [0, 0, 0, 0, 0, 0, ..] if is_a_host(last.address) => vec![tunnel_end(last.address, 96)],
        // 6to4.
        [0x2002, ..] => {
            let address = Ipv4Addr::new(octets[2], octets[3], octets[4], octets[5]);
            vec![tunnel_end(address, 16)]
        }
        // Teredo: the client's address, inverted (RFC 4380, section 4).
        [0x2001, 0, ..] => {
            let inverted = u32::from(last.address);
            vec![tunnel_end(Ipv4Addr::from(!inverted), 96)]
        }
        // ISATAP, under any prefix (RFC 5214, section 6.1).
        [_, _, _, _, 0 | 0x0200, 0x5efe, ..] => vec![tunnel_end(last.address, 96)],
        _ => Vec::new(),
    }
}

/// The IPv4 address that an address carries if a translator uses this network, which holds it, as
/// its prefix: a network of one of the lengths that a translator's prefix has.
///
/// No sign tells whether the range has a translator. So an address that is not formed as RFC 6052
/// requires, with zeros around the IPv4 address, counts only if a translator that overlooks this
/// would reach the machine, or its neighbour, on which everything may be open.
pub(super) fn embedded_under(address: Ipv6Addr, prefix_bits: u8) -> Option<EmbeddedIpv4> {
    if !PREFIX_LENGTHS.contains(&prefix_bits) {
        return None;
    }
    let octets = address.octets();
    let carried = at_length(octets, prefix_bits);
    let rest = octets.iter().skip(end_octet(prefix_bits));
    let is_well_formed = octets[RESERVED_OCTET] == 0 && rest.copied().all(|octet| octet == 0);
    let is_near = carried.address.is_loopback() || carried.address.is_link_local();
    (is_a_host(carried.address) && (is_well_formed || is_near)).then_some(carried)
}

/// The address behind a prefix of so many bits.
fn at_length(octets: [u8; 16], prefix_bits: u8) -> EmbeddedIpv4 {
    let start = usize::from(prefix_bits / 8);
    let mut of_ipv4 = (start..octets.len()).filter(|at| *at != RESERVED_OCTET);
    let address = std::array::from_fn(|_| of_ipv4.next().map_or(0, |at| octets[at]));
    EmbeddedIpv4 {
        address: Ipv4Addr::from(address),
        first_bit: prefix_bits,
        is_translated: true,
    }
}

/// The first octet behind the IPv4 address that follows a prefix of so many bits.
fn end_octet(prefix_bits: u8) -> usize {
    let start = usize::from(prefix_bits / 8);
    let end = start + 4;
    end + usize::from((start..end).contains(&RESERVED_OCTET))
}

fn tunnel_end(address: Ipv4Addr, first_bit: u8) -> EmbeddedIpv4 {
    EmbeddedIpv4 {
        address,
        first_bit,
        is_translated: false,
    }
}

/// Whether an address may be a host's. In `0.0.0.0/8` there is none, so what looks like one there
/// is another thing: a number of a host of IPv6, or a prefix of another length.
fn is_a_host(address: Ipv4Addr) -> bool {
    address.octets()[0] != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, expected: &[&str]) {
        let carried: Vec<_> = embedded_addresses(address.parse().unwrap())
            .iter()
            .map(|carried| carried.address.to_string())
            .collect();
        assert_eq!(carried, expected, "{address}");
    }

    #[test]
    fn forms_that_everybody_knows_carry_their_address() {
        check("::ffff:192.0.2.33", &["192.0.2.33"]);
        check("::ffff:0:192.0.2.33", &["192.0.2.33"]);
        check("64:ff9b::192.0.2.33", &["192.0.2.33"]);
        check("::192.0.2.33", &["192.0.2.33"]);
        check("2002:c000:221::1", &["192.0.2.33"]);
        check("2001:0:4136:e378:8000:63bf:3fff:fdde", &["192.0.2.33"]);
        check("fe80::5efe:192.0.2.33", &["192.0.2.33"]);
        check("2001:db8::200:5efe:192.0.2.33", &["192.0.2.33"]);
    }

    #[test]
    fn addresses_of_hosts_of_ipv6_carry_none() {
        for address in [
            "::",
            "::1",
            "::ff",
            "2606:2800:21f::1",
            "fd00::a00:1",
            "64:ff9b:2::1",
        ] {
            check(address, &[]);
        }
    }

    /// The table of RFC 6052, section 2.4, with the range for local use as the prefix.
    #[test]
    fn range_for_local_use_is_read_at_each_length() {
        check("64:ff9b:1:c000:2:2100::", &["192.0.2.33", "2.33.0.0"]);
        check("64:ff9b:1:0:c0:2:2100::", &["192.0.2.33", "33.0.0.0"]);
        check("64:ff9b:1::192.0.2.33", &["192.0.2.33"]);
    }

    /// The examples of RFC 6052, section 2.4.
    #[test]
    fn each_length_of_a_prefix_has_the_place_that_the_standard_says() {
        let check = |address: &str, prefix_bits, expected: Option<&str>| {
            let carried = embedded_under(address.parse().unwrap(), prefix_bits);
            let text = carried.map(|carried| carried.address.to_string());
            assert_eq!(text.as_deref(), expected, "{address}/{prefix_bits}");
        };
        let carried = Some("192.0.2.33");
        check("2001:db8:c000:221::", 32, carried);
        check("2001:db8:1c0:2:21::", 40, carried);
        check("2001:db8:122:c000:2:2100::", 48, carried);
        check("2001:db8:122:3c0:0:221::", 56, carried);
        check("2001:db8:122:344:c0:2:2100::", 64, carried);
        check("2001:db8:122:344::192.0.2.33", 96, carried);
        check("2001:db8:c000:221::1", 32, None);
        check("2001:db8:7f00:1::1", 32, Some("127.0.0.1"));
        check("2001:db8:a9fe:a9fe:ff::1", 32, Some("169.254.169.254"));
        check("2001:db8:0:221::", 32, None);
        check("2001:db8:c000:221::", 33, None);
    }
}
