//! The files of a certificate and its key: read whole, or refused by the option, the file and its
//! fault.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use sha2::{Digest, Sha256};

/// Most bytes of a file. A chain of ten certificates has about 20 KiB.
const FILE_BYTES_MAX: usize = 1 << 20;

const TLS_CERT: &str = "--tls-cert";
const TLS_KEY: &str = "--tls-key";

/// The first line of a key with a passphrase, and a line inside one of the older form.
const PASSPHRASE_MARKS: [&str; 2] = ["BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED"];

/// The files of a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, then the others of its chain, in PEM.
    pub certificate: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}

/// Error of a command line with one of the two files.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given} is given without {missing}: TLS needs a certificate and its key; give both or neither"
)]
pub struct HalfGiven {
    /// The option that was given.
    pub given: &'static str,
    /// The option that was not.
    pub missing: &'static str,
}

/// Why the files are refused.
#[derive(Debug, thiserror::Error)]
pub enum TlsFilesError {
    /// One cannot be read.
    #[error("{option}: failed to read {}", path.display())]
    Read {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The fault.
        #[source]
        source: io::Error,
    },
    /// One is not what it should be.
    #[error("{option}: {}: {fault}", path.display())]
    Fault {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The fault.
        fault: TlsFileFault,
    },
}

/// A fault in a file of a certificate or its key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFileFault {
    /// A folder, or a pipe, which could not be read a second time.
    #[error("not a file that can be read again")]
    NotAFile,
    /// Larger than such a file can be.
    #[error("more than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// No certificate in it.
    #[error("no certificate in it; expected PEM, `-----BEGIN CERTIFICATE-----`")]
    NoCertificate,
    /// A certificate that is cut or damaged.
    #[error("certificate {number} cannot be read: {reason}")]
    Certificate {
        /// The number of the certificate in its file.
        number: usize,
        /// The fault.
        reason: String,
    },
    /// No key in it.
    #[error("no private key in it; expected PEM, `-----BEGIN PRIVATE KEY-----`")]
    NoKey,
    /// A key that only its passphrase opens.
    #[error(
        "the private key has a passphrase; `openssl pkey -in FILE -out NEW` writes it without one"
    )]
    Passphrase,
    /// A key that is cut or damaged, or of a kind that the library lacks.
    #[error("the private key cannot be used: {0}")]
    Key(String),
    /// A key of none of the certificates.
    #[error("the key is of another certificate than that of {TLS_CERT} {}", .0.display())]
    OfAnother(PathBuf),
    /// The key of a certificate that is not the first.
    #[error(
        "the key is of certificate {number}; the server's own comes first, and those of its issuers follow"
    )]
    Order {
        /// The number of the certificate in its file.
        number: usize,
    },
}

/// The contents of both files.
pub(super) struct TlsTexts {
    certificates: Vec<u8>,
    key: Vec<u8>,
}

/// The content of both files, to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TlsDigest([u8; 32]);

/// A certificate with its chain and its key, which belong together.
pub(super) struct CertificatePair(CertifiedKey);

impl CertificatePair {
    /// The server's own certificate. Without one there is no pair.
    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.0.cert[0]
    }

    /// The number of certificates in the chain.
    pub(super) fn chain_len(&self) -> usize {
        self.0.cert.len()
    }
}

impl From<CertificatePair> for CertifiedKey {
    fn from(CertificatePair(key): CertificatePair) -> Self {
        key
    }
}

impl TlsFiles {
    /// The files that were given, or none. Fails if one of the two is missing.
    pub fn from_options(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Option<Self>, HalfGiven> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(Self { certificate, key })),
            (Some(_), None) => Err(HalfGiven {
                given: TLS_CERT,
                missing: TLS_KEY,
            }),
            (None, Some(_)) => Err(HalfGiven {
                given: TLS_KEY,
                missing: TLS_CERT,
            }),
            (None, None) => Ok(None),
        }
    }

    /// Reads both files.
    pub(super) fn read(&self) -> Result<TlsTexts, TlsFilesError> {
        Ok(TlsTexts {
            certificates: read_one(TLS_CERT, &self.certificate)?,
            key: read_one(TLS_KEY, &self.key)?,
        })
    }

    /// The certificate and its key.
    pub(super) fn parse_pair(&self, texts: &TlsTexts) -> Result<CertificatePair, TlsFilesError> {
        let chain = parse_chain(&texts.certificates).map_err(|fault| self.chain_error(fault))?;
        let key = private_key(&texts.key).map_err(|fault| self.key_error(fault))?;
        let signing = ring::default_provider().key_provider.load_private_key(key);
        let signing =
            signing.map_err(|error| self.key_error(TlsFileFault::Key(error.to_string())))?;
        let pair = CertifiedKey::new(chain, signing);
        match pair.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
                Ok(CertificatePair(pair))
            }
            Err(Error::InconsistentKeys(_)) => Err(match place_of_key(&pair) {
                Some(number) => self.chain_error(TlsFileFault::Order { number }),
                None => self.key_error(TlsFileFault::OfAnother(self.certificate.clone())),
            }),
            Err(error) => Err(self.chain_error(TlsFileFault::Certificate {
                number: 1,
                reason: error.to_string(),
            })),
        }
    }

    fn chain_error(&self, fault: TlsFileFault) -> TlsFilesError {
        fault_of(TLS_CERT, &self.certificate, fault)
    }

    fn key_error(&self, fault: TlsFileFault) -> TlsFilesError {
        fault_of(TLS_KEY, &self.key, fault)
    }
}

impl TlsTexts {
    pub(super) fn digest(&self) -> TlsDigest {
        // Each by itself, so that what moves from one file to the other is a change.
        let both = [
            Sha256::digest(&self.certificates),
            Sha256::digest(&self.key),
        ];
        TlsDigest(Sha256::digest(both.concat()).into())
    }
}

fn fault_of(option: &'static str, path: &Path, fault: TlsFileFault) -> TlsFilesError {
    TlsFilesError::Fault {
        option,
        path: path.to_owned(),
        fault,
    }
}

fn read_one(option: &'static str, path: &Path) -> Result<Vec<u8>, TlsFilesError> {
    let read = read_up_to_limit(path).map_err(|source| TlsFilesError::Read {
        option,
        path: path.to_owned(),
        source,
    })?;
    let bytes = read.ok_or_else(|| fault_of(option, path, TlsFileFault::NotAFile))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(fault_of(option, path, TlsFileFault::TooLarge));
    }
    Ok(bytes)
}

/// The bytes of a file, of which one more than the limit shows that it is too large. `None` if it
/// is no file: a pipe would be opened only once something writes to it.
fn read_up_to_limit(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// The certificates of a text in PEM, at least one.
fn parse_chain(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsFileFault> {
    let mut chain = Vec::new();
    for read in CertificateDer::pem_slice_iter(text) {
        let number = chain.len() + 1;
        let certificate = read.map_err(|error| TlsFileFault::Certificate {
            number,
            reason: error.to_string(),
        })?;
        webpki::EndEntityCert::try_from(&certificate).map_err(|error| {
            TlsFileFault::Certificate {
                number,
                reason: error.to_string(),
            }
        })?;
        chain.push(certificate);
    }
    if chain.is_empty() {
        Err(TlsFileFault::NoCertificate)
    } else {
        Ok(chain)
    }
}

fn private_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, TlsFileFault> {
    let as_text = String::from_utf8_lossy(text);
    if PASSPHRASE_MARKS.iter().any(|mark| as_text.contains(mark)) {
        return Err(TlsFileFault::Passphrase);
    }
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        PemError::NoItemsFound => TlsFileFault::NoKey,
        error => TlsFileFault::Key(error.to_string()),
    })
}

/// The number of the certificate whose key this is.
fn place_of_key(pair: &CertifiedKey) -> Option<usize> {
    let place = pair.cert.iter().position(|certificate| {
        let alone = CertifiedKey::new(vec![certificate.clone()], pair.key.clone());
        alone.keys_match().is_ok()
    });
    place.map(|place| place + 1)
}

#[cfg(test)]
mod tests;
