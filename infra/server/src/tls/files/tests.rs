use super::*;
use posthaste_tests::authority::{Authority, Issued};

const NAMES: &[&str] = &["hooks.example.com"];

/// The number of certificates that files with these texts give, or what is said of them.
fn read(issued: &Issued) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = issued.write(folder.path());
    let files = TlsFiles { certificate, key };
    let root = folder.path().to_str().unwrap().to_owned();
    let pair = files.read().and_then(|texts| files.parse_pair(&texts));
    pair.map(|pair| pair.chain_len())
        .map_err(|error| error.to_string().replace(&root, ""))
}

fn refused(certificate: &str, key: &str, expected: &str) {
    let issued = Issued {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    let error = read(&issued).unwrap_err();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_chain_is_taken_with_what_stands_between() {
    let authority = Authority::new();
    let Issued { certificate, key } = authority.issue(NAMES);
    let chain = format!(
        "Subject: hooks\n{certificate}\nIssuer:\n{}",
        authority.pem()
    );
    let issued = |certificate: &str, key: &str| Issued {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    assert_eq!(read(&issued(&certificate, &key)), Ok(1));
    assert_eq!(read(&issued(&chain, &key)), Ok(2));
    // One file for both.
    let both = format!("{key}{certificate}");
    assert_eq!(read(&issued(&both, &both)), Ok(1));
}

#[test]
fn wrong_files_are_named_with_their_option_and_fault() {
    let authority = Authority::new();
    let Issued { certificate, key } = authority.issue(NAMES);
    refused("", &key, "--tls-cert: /tls.crt: no certificate in it");
    refused(
        &key,
        &certificate,
        "--tls-cert: /tls.crt: no certificate in it",
    );
    refused(
        &certificate,
        "",
        "--tls-key: /tls.key: no private key in it",
    );
    refused(
        &certificate,
        &certificate,
        "--tls-key: /tls.key: no private key in it",
    );
    let cut = &certificate[..certificate.len() / 2];
    refused(
        cut,
        &key,
        "--tls-cert: /tls.crt: certificate 1 cannot be read",
    );
    let second = format!("{certificate}{cut}");
    refused(
        &second,
        &key,
        "--tls-cert: /tls.crt: certificate 2 cannot be read",
    );
    let empty = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    refused(
        empty,
        &key,
        "--tls-cert: /tls.crt: certificate 1 cannot be read",
    );
    let cut = &key[..key.len() / 2];
    refused(
        &certificate,
        cut,
        "--tls-key: /tls.key: the private key cannot be used",
    );
    let damaged = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    refused(
        &certificate,
        damaged,
        "--tls-key: /tls.key: the private key cannot be used",
    );
    let locked = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    refused(
        &certificate,
        &locked,
        "--tls-key: /tls.key: the private key has a passphrase",
    );
    let other = authority.issue(NAMES).key;
    refused(
        &certificate,
        &other,
        "--tls-key: /tls.key: the key is of another certificate",
    );
    let turned = format!("{}{certificate}", authority.pem());
    refused(
        &turned,
        &key,
        "--tls-cert: /tls.crt: the key is of certificate 2",
    );
    let large = "#".repeat(FILE_BYTES_MAX + 1);
    refused(
        &large,
        &key,
        "--tls-cert: /tls.crt: more than 1048576 bytes",
    );
}

#[test]
fn tls_file_that_cannot_be_read_again_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let fault = |path: &Path| read_one(TLS_KEY, path).unwrap_err().to_string();
    let expected = format!(
        "--tls-key: {}: not a file that can be read again",
        folder.path().display()
    );
    assert_eq!(fault(folder.path()), expected);
    let missing = folder.path().join("none");
    let expected = format!("--tls-key: failed to read {}", missing.display());
    assert_eq!(fault(&missing), expected);
}

#[test]
fn certificate_or_key_alone_is_refused() {
    let path = || Some(PathBuf::from("a"));
    assert_eq!(TlsFiles::from_options(None, None), Ok(None));
    assert!(TlsFiles::from_options(path(), path()).unwrap().is_some());
    let said = |certificate, key| {
        TlsFiles::from_options(certificate, key)
            .unwrap_err()
            .to_string()
    };
    let rest = "TLS needs a certificate and its key; give both or neither";
    let expected = format!("--tls-cert is given without --tls-key: {rest}");
    assert_eq!(said(path(), None), expected);
    let expected = format!("--tls-key is given without --tls-cert: {rest}");
    assert_eq!(said(None, path()), expected);
}
