//! An authority that issues certificates for servers, which no machine trusts by itself.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

/// An authority.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, both in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// One with a key of its own.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("keys can be made");
        Self(CertifiedIssuer::self_signed(params, key).expect("it can sign itself"))
    }

    /// Returns the authority's own certificate in PEM, for clients.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate of these names or addresses, which is valid now.
    pub fn issue(&self, names: &[&str]) -> Issued {
        self.issue_by(names, |_| {})
    }

    /// The same, which was valid until the end of 2020.
    pub fn issue_expired(&self, names: &[&str]) -> Issued {
        self.issue_by(names, |params| params.not_after = date_time_ymd(2021, 1, 1))
    }

    /// The same, which is valid from 2200 on.
    pub fn issue_early(&self, names: &[&str]) -> Issued {
        self.issue_by(names, |params| {
            params.not_before = date_time_ymd(2200, 1, 1);
        })
    }

    fn issue_by(&self, names: &[&str], set: impl FnOnce(&mut CertificateParams)) -> Issued {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("the names are names");
        set(&mut params);
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.signed_by(&key, &self.0).expect("it can sign");
        Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Issued {
    /// Writes the files `tls.crt` and `tls.key` into a folder, and returns their paths.
    pub fn write(&self, folder: &Path) -> [PathBuf; 2] {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).expect("the folder can be written");
            path
        };
        [
            write("tls.crt", &self.certificate),
            write("tls.key", &self.key),
        ]
    }
}
