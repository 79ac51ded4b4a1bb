//! The addresses that a server listens on.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use url::Url;

use super::error::ServeError;
use super::http::{ListeningAddress, ServedParts};
use super::settings::ServeSettings;

/// The addresses of a server, bound.
#[derive(Debug)]
pub(super) struct BoundAddresses {
    /// The address at which producers and endpoints come in.
    pub(super) public: SocketAddr,
    /// The address of the management API.
    pub(super) management: SocketAddr,
    /// The address of the metrics.
    pub(super) metrics: SocketAddr,
    /// Whether they speak TLS.
    pub(super) has_tls: bool,
}

/// Binds the addresses of these settings.
pub(super) async fn bind(
    settings: &ServeSettings,
) -> Result<(BoundAddresses, Vec<ListeningAddress>), ServeError> {
    let answers = ServedParts {
        public: true,
        management: settings.manage_listen.is_none(),
        metrics: settings.metrics_listen.is_none(),
    };
    let mut listening = Vec::new();
    let public = bind_one("--listen", settings.listen, answers, &mut listening).await?;
    let mut addresses = BoundAddresses {
        public,
        management: public,
        metrics: public,
        has_tls: settings.tls.is_some(),
    };
    if let Some(address) = settings.manage_listen {
        // Commands publish where they manage.
        let answers = ServedParts {
            management: true,
            ..answers
        };
        addresses.management =
            bind_one("--manage-listen", address, answers, &mut listening).await?;
        addresses.metrics = addresses.management;
    }
    if let Some(address) = settings.metrics_listen {
        let answers = ServedParts {
            public: false,
            management: false,
            metrics: true,
        };
        addresses.metrics = bind_one("--metrics-listen", address, answers, &mut listening).await?;
    }
    Ok((addresses, listening))
}

async fn bind_one(
    option: &'static str,
    address: SocketAddr,
    answers: ServedParts,
    listening: &mut Vec<ListeningAddress>,
) -> Result<SocketAddr, ServeError> {
    let opened = open_listener(address).await;
    let (listener, bound) = opened.map_err(|source| ServeError::Listen {
        option,
        address,
        source,
    })?;
    listening.push(ListeningAddress { listener, answers });
    Ok(bound)
}

/// A listener, with the address that it is bound to.
async fn open_listener(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

impl BoundAddresses {
    /// The URL of one of them.
    pub(super) fn url_for(&self, address: SocketAddr) -> String {
        let scheme = if self.has_tls { "https" } else { "http" };
        format!("{scheme}://{address}")
    }

    /// Tells of the addresses on which keys travel in clear text to other machines.
    pub(super) fn warn_of_clear_text(&self, settings: &ServeSettings) {
        for address in self.in_clear_text(settings.manage.public_url.as_ref()) {
            tracing::warn!(
                %address,
                "keys travel in clear text to this address, give --tls-cert and --tls-key, or put a proxy with \
                 TLS before it and name it in --public-url"
            );
        }
    }

    /// The addresses beyond loopback where keys are shown, each once. None where they speak TLS, or a
    /// proxy that does is known to stand before them.
    fn in_clear_text(&self, public_url: Option<&Url>) -> Vec<SocketAddr> {
        if self.has_tls || public_url.is_some_and(|url| url.scheme() == "https") {
            return Vec::new();
        }
        let management = (self.management != self.public).then_some(self.management);
        let of_keys = [self.public].into_iter().chain(management);
        of_keys.filter(|it| !it.ip().is_loopback()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_cli::error::CommandFailure;

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    async fn bound(settings: ServeSettings) -> (BoundAddresses, Vec<ServedParts>) {
        let (addresses, listening) = bind(&settings).await.unwrap();
        let answers = listening.iter().map(|it| it.answers).collect();
        (addresses, answers)
    }

    fn settings(manage: bool, metrics: bool) -> ServeSettings {
        ServeSettings {
            listen: ANY,
            manage_listen: manage.then_some(ANY),
            metrics_listen: metrics.then_some(ANY),
            ..ServeSettings::default()
        }
    }

    #[tokio::test]
    async fn each_address_answers_what_no_other_does() {
        let answers = |public, management, metrics| ServedParts {
            public,
            management,
            metrics,
        };
        let (all, found) = bound(settings(false, false)).await;
        assert_eq!(found, [ServedParts::ALL]);
        assert_eq!((all.management, all.metrics), (all.public, all.public));

        let (two, found) = bound(settings(true, false)).await;
        assert_eq!(found, [answers(true, false, true), ServedParts::ALL]);
        assert!(two.management != two.public && two.metrics == two.management);

        let (three, found) = bound(settings(true, true)).await;
        let expected = [
            answers(true, false, false),
            answers(true, true, false),
            answers(false, false, true),
        ];
        assert_eq!(found, expected);
        assert!(three.metrics != three.management);

        let (two, found) = bound(settings(false, true)).await;
        assert_eq!(
            found,
            [answers(true, true, false), answers(false, false, true)]
        );
        assert_eq!(two.management, two.public);
    }

    #[test]
    fn keys_in_clear_text_are_told_of_where_others_may_read_them() {
        let addresses = |public: &str, management: &str| BoundAddresses {
            public: public.parse().unwrap(),
            management: management.parse().unwrap(),
            metrics: "0.0.0.0:3".parse().unwrap(),
            has_tls: false,
        };
        let check = |public, management, url: Option<&str>, expected: &[&str]| {
            let url = url.map(|url| Url::parse(url).unwrap());
            let told = addresses(public, management).in_clear_text(url.as_ref());
            let told: Vec<_> = told.iter().map(ToString::to_string).collect();
            assert_eq!(told, expected, "{public} {management}");
        };
        check("127.0.0.1:1", "[::1]:2", None, &[]);
        check("0.0.0.0:1", "0.0.0.0:1", None, &["0.0.0.0:1"]);
        check("10.0.0.1:1", "127.0.0.1:2", None, &["10.0.0.1:1"]);
        check("127.0.0.1:1", "[::]:2", None, &["[::]:2"]);
        check("0.0.0.0:1", "[::]:2", None, &["0.0.0.0:1", "[::]:2"]);
        let plain = "http://a.example";
        let safe = "https://a.example";
        check("0.0.0.0:1", "0.0.0.0:1", Some(plain), &["0.0.0.0:1"]);
        check("0.0.0.0:1", "0.0.0.0:1", Some(safe), &[]);
        let with_tls = BoundAddresses {
            has_tls: true,
            ..addresses("0.0.0.0:1", "[::]:2")
        };
        assert_eq!(with_tls.in_clear_text(None), []);
        let url = with_tls.url_for(with_tls.management);
        assert_eq!(url, "https://[::]:2");
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named() {
        let (taken, _held) = bind(&settings(false, false)).await.unwrap();
        let settings = ServeSettings {
            metrics_listen: Some(taken.public),
            ..settings(false, false)
        };
        let error = bind(&settings).await.unwrap_err();
        let expected = format!("failed to listen on {}", taken.public);
        assert_eq!(error.to_string(), expected);
        let hint = error.hint().unwrap();
        assert!(
            hint.starts_with("another port for --metrics-listen: "),
            "{hint}"
        );
    }
}
