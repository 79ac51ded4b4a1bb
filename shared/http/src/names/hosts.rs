//! The hosts file, by hand: hickory leaves out the names that IDNA refuses, such as `my_service`,
//! and asks a name server for the family that the file does not have.

use std::collections::HashMap;
use std::net::IpAddr;

/// Names and their addresses, as a hosts file has them (`man 5 hosts`).
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HostsFile(HashMap<String, Vec<IpAddr>>);

impl HostsFile {
    /// Reads a file. Lines that are not understood are left out, as the system's resolver does.
    pub(super) fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
        for line in text.trim_start_matches('\u{feff}').lines() {
            let entry = line.split_once('#').map_or(line, |(entry, _)| entry);
            let mut words = entry.split_whitespace();
            let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else {
                continue;
            };
            for name in words {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                let addresses = hosts.entry(name).or_default();
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        Self(hosts)
    }

    /// The addresses of a name in lower case, if the file has any. They are all that it has: a name
    /// that is pinned to one address is not asked for elsewhere.
    pub(super) fn addresses(&self, name: &str) -> Option<Vec<IpAddr>> {
        self.0.get(name.trim_end_matches('.')).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_line_has_its_address() {
        let file = "\u{feff}127.0.0.1 localhost\n\
            10.0.0.1\tone.example One_Alias my_service. # and a word\n\
            fd00::1 one.example\n10.0.0.1 one.example\n\
            # 10.0.0.9 nine.example\nnonsense two.example\n10.0.0.2\r\n\r\n10.0.0.3 three\r\n";
        let hosts = HostsFile::parse(file.as_bytes());
        let check = |name: &str, expected: &[&str]| {
            let expected: Vec<IpAddr> = expected.iter().map(|it| it.parse().unwrap()).collect();
            let expected = (!expected.is_empty()).then_some(expected);
            assert_eq!(hosts.addresses(name), expected, "{name}");
        };
        check("one.example", &["10.0.0.1", "fd00::1"]);
        check("one_alias", &["10.0.0.1"]);
        check("my_service", &["10.0.0.1"]);
        check("my_service.", &["10.0.0.1"]);
        check("localhost", &["127.0.0.1"]);
        check("three", &["10.0.0.3"]);
        for name in ["nine.example", "two.example", "and", "", "example"] {
            check(name, &[]);
        }
    }
}
