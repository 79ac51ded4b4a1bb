//! A name server that answers as a script says, over UDP. It speaks just enough DNS (RFC 1035) by
//! hand, and remembers what it was asked.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::seen::Seen;

/// Largest question that is read, in bytes.
const QUESTION_BYTES_MAX: usize = 4096;

/// The length of a message's head, in bytes.
const HEAD_BYTES: usize = 12;

/// An answer that was asked for recursion and offers it, without its code.
const RESPONSE: u16 = 0x8180;

/// The server's answer for a name.
#[derive(Debug, Clone)]
pub enum NameAnswer {
    /// Answers these addresses, in this order.
    Addresses(Vec<IpAddr>),
    /// Answers these addresses, and is silent when asked for a kind of which there is none.
    OnlyAddresses(Vec<IpAddr>),
    /// No such name exists.
    NoSuchName,
    /// The server itself has failed.
    Failure,
    /// Nothing, ever.
    Silence,
}

/// A name server on a free port of 127.0.0.1. Its thread ends with the test process.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    names: Arc<Mutex<HashMap<String, NameAnswer>>>,
    asked: Seen<(String, u16)>,
}

impl NameServer {
    /// Starts to listen. Names without a script do not exist.
    pub fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
        let address = socket.local_addr().expect("it is bound");
        let server = Self {
            address,
            names: Arc::default(),
            asked: Seen::default(),
        };
        let names = Arc::clone(&server.names);
        let asked = server.asked.clone();
        thread::spawn(move || serve(&socket, &names, &asked));
        server
    }

    /// The address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers so for a name from now on.
    pub fn answer(&self, name: &str, answer: NameAnswer) {
        lock(&self.names).insert(name.to_owned(), answer);
    }

    /// Answers with these addresses for a name from now on.
    pub fn resolve(&self, name: &str, addresses: &[&str]) {
        let parse = |address: &&str| address.parse().expect("an address");
        self.answer(
            name,
            NameAnswer::Addresses(addresses.iter().map(parse).collect()),
        );
    }

    /// The names it was asked for until now, in order and once for each kind of address: on a busy
    /// machine a client asks again before the answer has come.
    pub fn asked(&self) -> Vec<String> {
        let mut questions = HashSet::new();
        let all = self.asked.all().into_iter();
        let first = all.filter(|question| questions.insert(question.clone()));
        first.map(|(name, _)| name).collect()
    }
}

fn serve(
    socket: &UdpSocket,
    names: &Mutex<HashMap<String, NameAnswer>>,
    asked: &Seen<(String, u16)>,
) {
    let mut bytes = [0; QUESTION_BYTES_MAX];
    while let Ok((length, from)) = socket.recv_from(&mut bytes) {
        let Some(question) = Question::parse(&bytes[..length]) else {
            continue;
        };
        asked.push((question.name.clone(), question.kind));
        let answer = lock(names)
            .get(&question.name)
            .cloned()
            .unwrap_or(NameAnswer::NoSuchName);
        if let Some(response) = question.response(&answer) {
            // The client may be gone.
            let _ = socket.send_to(&response, from);
        }
    }
}

/// One question, as it was asked.
struct Question<'a> {
    id: [u8; 2],
    name: String,
    kind: u16,
    /// The question as it is in the message, to be repeated.
    bytes: &'a [u8],
}

impl<'a> Question<'a> {
    fn parse(message: &'a [u8]) -> Option<Self> {
        let id = [*message.first()?, *message.get(1)?];
        let mut labels = Vec::new();
        let mut rest = message.get(HEAD_BYTES..)?;
        loop {
            let (length, after) = rest.split_first()?;
            if *length == 0 {
                rest = after;
                break;
            }
            let (label, after) = after.split_at_checked((*length).into())?;
            labels.push(String::from_utf8_lossy(label).to_lowercase());
            rest = after;
        }
        let kind = u16::from_be_bytes([*rest.first()?, *rest.get(1)?]);
        let end = message.len() - rest.len() + 4;
        Some(Self {
            id,
            name: labels.join("."),
            kind,
            bytes: message.get(HEAD_BYTES..end)?,
        })
    }

    fn response(&self, answer: &NameAnswer) -> Option<Vec<u8>> {
        let (code, addresses) = match answer {
            NameAnswer::Addresses(addresses) | NameAnswer::OnlyAddresses(addresses) => {
                (0, addresses.as_slice())
            }
            NameAnswer::Failure => (2, &[][..]),
            NameAnswer::NoSuchName => (3, &[][..]),
            NameAnswer::Silence => return None,
        };
        let records: Vec<_> = addresses
            .iter()
            .filter_map(|address| self.record(*address))
            .collect();
        if records.is_empty() && matches!(answer, NameAnswer::OnlyAddresses(_)) {
            return None;
        }
        let count = u16::try_from(records.len()).ok()?;
        let mut message = self.id.to_vec();
        for number in [RESPONSE | code, 1, count, 0, 0] {
            message.extend(number.to_be_bytes());
        }
        message.extend(self.bytes);
        message.extend(records.concat());
        Some(message)
    }

    /// An address as a record of a minute, if it is of the kind that was asked for.
    fn record(&self, address: IpAddr) -> Option<Vec<u8>> {
        let (kind, data) = match address {
            IpAddr::V4(address) => (1, address.octets().to_vec()),
            IpAddr::V6(address) => (28, address.octets().to_vec()),
        };
        // The name is the question's: a pointer to it. Then kind, class, time to live and length.
        let length = u8::try_from(data.len()).ok()?;
        let head = [0xc0, 0x0c, 0, kind, 0, 1, 0, 0, 0, 60, 0, length];
        (u16::from(kind) == self.kind).then(|| [&head, data.as_slice()].concat())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question for the IPv4 addresses of `a.test`.
    const QUESTION: &[u8] =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01A\x04test\x00\x00\x01\x00\x01";

    #[test]
    fn a_question_is_repeated_with_the_addresses_of_its_kind() {
        let question = Question::parse(QUESTION).unwrap();
        assert_eq!((question.name.as_str(), question.kind), ("a.test", 1));
        let both = ["127.0.0.1", "::1"]
            .map(|address| address.parse().unwrap())
            .to_vec();
        let expected = [
            b"\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00".as_slice(),
            &QUESTION[HEAD_BYTES..],
            b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01",
        ];
        assert_eq!(
            question.response(&NameAnswer::Addresses(both)),
            Some(expected.concat())
        );
        let code = |answer| question.response(&answer).map(|response| response[3] & 0xf);
        assert_eq!(code(NameAnswer::NoSuchName), Some(3));
        assert_eq!(code(NameAnswer::Failure), Some(2));
        assert_eq!(code(NameAnswer::Silence), None);
        assert_eq!(
            code(NameAnswer::OnlyAddresses(vec![
                "127.0.0.1".parse().unwrap()
            ])),
            Some(0)
        );
        assert_eq!(
            code(NameAnswer::OnlyAddresses(vec!["::1".parse().unwrap()])),
            None
        );
    }

    #[test]
    fn invalid_question_is_not_answered() {
        for length in 0..QUESTION.len() {
            assert!(Question::parse(&QUESTION[..length]).is_none(), "{length}");
        }
    }
}
