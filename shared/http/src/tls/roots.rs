//! The file of an operator's own authorities, read whole or refused by the place of its fault.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Most bytes of the file. The authorities of all of the web have a quarter of a MiB.
const FILE_BYTES_MAX: usize = 16 << 20;

/// The tag of a sequence, with which a certificate in DER begins.
const DER_SEQUENCE: u8 = 0x30;

/// The mark that some programs write before a text, also in the middle of joined files.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The dashes around the first and the last line of a certificate.
const DASHES: &str = "-----";

/// The shortest line that is taken for a part of a certificate outside of one, in characters. A
/// whole line of PEM has 64 or 76; a remark in letters and digits alone is shorter.
const BASE64_LINE_CHARS: usize = 60;

/// Why a file of authorities is refused.
#[derive(Debug, thiserror::Error)]
pub enum RootFileError {
    /// The file cannot be read.
    #[error("failed to read root certificates from {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The fault.
        #[source]
        source: io::Error,
    },
    /// A part of the file is not as it should be.
    #[error("{path}: {fault}")]
    Fault {
        /// The file.
        path: PathBuf,
        /// The part, and what it is.
        fault: RootFileFault,
    },
}

/// A fault in a file of authorities.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootFileFault {
    /// No certificate in it.
    #[error("no certificate in it; expected PEM, `-----BEGIN CERTIFICATE-----`, or one in DER")]
    Empty,
    /// Larger than such a file can be.
    #[error("more than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// UTF-16, as some shells write what is redirected.
    #[error("it is text in UTF-16; save it as UTF-8 or ASCII")]
    Utf16,
    /// Bytes that are no text, in a file that is not DER.
    #[error("line {0}: not text, and no certificate in DER")]
    Binary(usize),
    /// Another thing than a certificate.
    #[error("line {line}: {label:?}, where certificates alone belong")]
    Label {
        /// The line of its begin.
        line: usize,
        /// The kind that its first line names.
        label: String,
    },
    /// A first or last line that is not written as it must be.
    #[error("line {0}: neither `-----BEGIN CERTIFICATE-----` nor `-----END CERTIFICATE-----`")]
    Boundary(usize),
    /// Data of a certificate without its first line.
    #[error("line {0}: data outside of a certificate; its BEGIN line is missing")]
    Outside(usize),
    /// No last line.
    #[error("line {0}: the certificate that begins here has no END line")]
    Unfinished(usize),
    /// Not a certificate inside.
    #[error("line {line}: certificate {number} cannot be read: {reason}")]
    Certificate {
        /// The line of its begin.
        line: usize,
        /// The number of the certificate in the file.
        number: usize,
        /// The fault.
        reason: String,
    },
}

/// Adds the authorities of a file to `roots`, and returns how many certificates it has.
pub(super) fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<usize, RootFileError> {
    read_file(roots, path).map(|certificates| certificates.len())
}

/// The authorities of a file, each in DER. Each can be used as an authority.
pub fn read_root_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, RootFileError> {
    read_file(&mut RootCertStore::empty(), path)
}

/// Adds the authorities of a file to `roots`, and returns them.
fn read_file(
    roots: &mut RootCertStore,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, RootFileError> {
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|source| RootFileError::Read {
            path: path.to_owned(),
            source,
        })?;
    add_certificates(roots, &bytes).map_err(|fault| RootFileError::Fault {
        path: path.to_owned(),
        fault,
    })
}

fn add_certificates(
    roots: &mut RootCertStore,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, RootFileFault> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(RootFileFault::TooLarge);
    }
    let blocks = if bytes.first() == Some(&DER_SEQUENCE) && std::str::from_utf8(bytes).is_err() {
        vec![CertificateBlock {
            line: 1,
            der: CertificateDer::from(bytes.to_vec()),
        }]
    } else {
        parse_blocks(bytes)?
    };
    for (at, block) in blocks.iter().enumerate() {
        roots
            .add(block.der.clone())
            .map_err(|error| RootFileFault::Certificate {
                line: block.line,
                number: at + 1,
                reason: error.to_string(),
            })?;
    }
    if blocks.is_empty() {
        Err(RootFileFault::Empty)
    } else {
        Ok(blocks.into_iter().map(|block| block.der).collect())
    }
}

/// A certificate, and the line on which it begins.
struct CertificateBlock {
    line: usize,
    der: CertificateDer<'static>,
}

/// The certificates of a text in PEM (RFC 7468). Between them may be remarks, as bundles have them.
fn parse_blocks(bytes: &[u8]) -> Result<Vec<CertificateBlock>, RootFileFault> {
    if matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Err(RootFileFault::Utf16);
    }
    let mut blocks: Vec<CertificateBlock> = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (at, line) in split_lines(bytes).enumerate() {
        let number = at + 1;
        let line = std::str::from_utf8(line)
            .ok()
            .filter(|line| !line.chars().any(|it| it.is_control() && it != '\t'))
            .ok_or(RootFileFault::Binary(number))?;
        let line = line.trim_start_matches(BYTE_ORDER_MARK).trim();
        match (&mut open, BlockBoundary::parse_line(line, number)?) {
            (None, Some(BlockBoundary::Begin)) => open = Some((number, format!("{line}\n"))),
            (Some((begin, text)), Some(BlockBoundary::End)) => {
                text.push_str(line);
                let begin = *begin;
                let read = CertificateDer::from_pem_slice(text.as_bytes());
                let der = read.map_err(|error| RootFileFault::Certificate {
                    line: begin,
                    number: blocks.len() + 1,
                    reason: error.to_string(),
                })?;
                blocks.push(CertificateBlock { line: begin, der });
                open = None;
            }
            (Some((begin, _)), Some(BlockBoundary::Begin)) => {
                return Err(RootFileFault::Unfinished(*begin));
            }
            (None, Some(BlockBoundary::End)) => return Err(RootFileFault::Outside(number)),
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) if is_data(line) => return Err(RootFileFault::Outside(number)),
            (None, None) => {}
        }
    }
    match open {
        Some((begin, _)) => Err(RootFileFault::Unfinished(begin)),
        None => Ok(blocks),
    }
}

/// Lines that end with a line feed, a carriage return or both.
fn split_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let Some(end) = bytes.iter().position(|it| matches!(it, b'\n' | b'\r')) else {
            rest = None;
            return (!bytes.is_empty()).then_some(bytes);
        };
        let length = if bytes[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = Some(&bytes[end + length..]);
        Some(&bytes[..end])
    })
}

/// The first or the last line of a certificate.
enum BlockBoundary {
    Begin,
    End,
}

impl BlockBoundary {
    fn parse_line(line: &str, number: usize) -> Result<Option<Self>, RootFileFault> {
        let inner = line
            .strip_prefix(DASHES)
            .and_then(|rest| rest.strip_suffix(DASHES));
        match inner {
            Some("BEGIN CERTIFICATE") => Ok(Some(Self::Begin)),
            Some("END CERTIFICATE") => Ok(Some(Self::End)),
            Some(inner) if inner.starts_with("BEGIN ") => Err(RootFileFault::Label {
                line: number,
                label: inner["BEGIN ".len()..].to_owned(),
            }),
            _ if has_boundary_words(line) => Err(RootFileFault::Boundary(number)),
            _ => Ok(None),
        }
    }
}

/// Whether a line was meant as the first or last one of a certificate.
fn has_boundary_words(line: &str) -> bool {
    let words = ["BEGIN", "END"];
    let bare = line.trim_matches(|it: char| it == '-' || it.is_whitespace());
    line.starts_with('-') && words.iter().any(|word| bare.starts_with(word))
        || words
            .iter()
            .any(|word| bare == format!("{word} CERTIFICATE"))
        || line.contains("-----BEGIN")
        || line.contains("-----END")
}

fn is_data(line: &str) -> bool {
    let is_base64 = line
        .chars()
        .all(|it| it.is_ascii_alphanumeric() || "+/=".contains(it));
    let is_underline = line.chars().all(|it| it == '=');
    line.len() >= BASE64_LINE_CHARS && is_base64 && !is_underline
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn certificate() -> rcgen::Certificate {
        let key = KeyPair::generate().unwrap();
        CertificateParams::default().self_signed(&key).unwrap()
    }

    fn pem() -> String {
        certificate().pem().replace("\r\n", "\n")
    }

    fn added(bytes: &[u8]) -> Result<usize, String> {
        let mut roots = RootCertStore::empty();
        let added = add_certificates(&mut roots, bytes).map(|certificates| certificates.len());
        if let Ok(count) = added {
            assert_eq!(roots.len(), count);
        }
        added.map_err(|fault| fault.to_string())
    }

    #[test]
    fn every_certificate_of_a_file_is_read() {
        let one = pem();
        let two = pem();
        let both = format!("{one}{two}");
        let check = |text: String, expected| {
            assert_eq!(added(text.as_bytes()), Ok(expected), "{text}");
        };
        check(one.clone(), 1);
        check(both.clone(), 2);
        check(format!("\u{feff}{both}"), 2);
        check(format!("\u{feff}{one}\u{feff}{two}"), 2);
        check(both.replace('\n', "\r\n"), 2);
        check(both.replace('\n', "\r"), 2);
        check(both.trim_end().to_owned(), 2);
        check(both.replace('\n', " \t\n"), 2);
        check(
            format!("# A remark\nCompany Root CA\n=====\n\n{one}\nIssuer: O=Bücher\n{two}\n\n"),
            2,
        );
        check(format!("{one}{one}"), 2);
        assert_eq!(added(certificate().der()), Ok(1));
    }

    /// Root files with a part that is not read are refused, with the line of that part.
    #[test]
    fn unreadable_root_file_is_refused_with_its_line() {
        let one = pem();
        let lines = one.lines().count();
        let check = |text: &str, expected: &str| {
            let error = added(text.as_bytes()).expect_err(text);
            assert!(error.starts_with(expected), "{text}: {error}");
        };
        check("", "no certificate in it");
        check("\u{feff}\n# nothing\n", "no certificate in it");
        check(
            "[package]\nname = \"posthaste-http\"\n",
            "no certificate in it",
        );
        let key = KeyPair::generate().unwrap().serialize_pem();
        check(
            &format!("{one}{key}"),
            &format!(
                "line {}: \"PRIVATE KEY\", where certificates alone belong",
                lines + 1
            ),
        );
        for label in [
            "TRUSTED CERTIFICATE",
            "PKCS7",
            "CERTIFICATE REQUEST",
            "X509 CRL",
        ] {
            let text = one.replace("CERTIFICATE", label);
            check(&text, &format!("line 1: {label:?}, where"));
        }
        check(&one[1..], "line 1: neither");
        check(
            &one.replace("BEGIN CERTIFICATE", "BEGIN  CERTIFICATE"),
            "line 1: ",
        );
        check(&one.replacen("-----", "", 1), "line 1: neither");
        check(
            &one[one.find('\n').unwrap() + 1..],
            "line 1: data outside of a certificate",
        );
        let end = one.find("-----END").unwrap();
        check(
            &one[..end],
            "line 1: the certificate that begins here has no END line",
        );
        check(
            &format!("{}{one}", &one[..end]),
            "line 1: the certificate that begins",
        );
        check(
            &format!("x\n{one}{}", &one[end..]),
            &format!("line {}: data", lines + 2),
        );
        check(
            &format!("{one}\n\n{}", one.replace("\nMI", "\n!I")),
            &format!("line {}: certificate 2 cannot be read: ", lines + 3),
        );
        check(
            &format!("{one}-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"),
            &format!("line {}: certificate 2 cannot be read: ", lines + 1),
        );
        check(
            &format!("{one}\0\0"),
            &format!("line {}: not text", lines + 1),
        );
    }

    #[test]
    fn bytes_that_are_no_pem_are_refused() {
        let utf16: Vec<u8> = pem().encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = [&[0xff, 0xfe], utf16.as_slice()].concat();
        let said = "it is text in UTF-16; save it as UTF-8 or ASCII";
        assert_eq!(added(&marked), Err(said.to_owned()));
        let two = [certificate().der().to_vec(), certificate().der().to_vec()].concat();
        assert!(
            added(&two)
                .unwrap_err()
                .starts_with("line 1: certificate 1 cannot be read")
        );
        let binary = b"\x89PNG\r\n\x1a\n";
        assert!(added(binary).unwrap_err().starts_with("line 1: not text"));
        let large = vec![b'#'; FILE_BYTES_MAX + 1];
        assert_eq!(added(&large), Err("more than 16777216 bytes".to_owned()));
    }
}
