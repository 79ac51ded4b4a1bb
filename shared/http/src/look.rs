//! A look at an endpoint without a request: its name, its addresses, a connection and TLS.

use std::net::IpAddr;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use posthaste_core::api::doctor::{CertificateTimes, ConnectedEndpoint, EndpointFault};
use posthaste_core::model::{Link, SendFailure};
use posthaste_ports::Clock;

use crate::client::HyperWebhookClient;
use crate::dial::{addresses_in_turn, connect_and, shake_hands};
use crate::failure::SendFault;
use crate::names::NameLookup;
use crate::tls::certificate_times;
use crate::wire::PlacedSocket;

/// The failure if the name servers did not answer in time.
const NO_NAME_SERVER: SendFailure = SendFailure::Resolution {
    does_not_exist: false,
};

impl<C: Clock, N: NameLookup> HyperWebhookClient<C, N> {
    /// Connects to a link within `timeout` as a request would, by the same names, rules on
    /// addresses and authorities, verifies the certificate in a whole handshake, and closes the
    /// connection. No byte of HTTP is sent, and no kept connection is used or closed, as long as
    /// there is a place for one more.
    pub async fn look_at(
        &self,
        link: &Link,
        timeout: Duration,
    ) -> Result<ConnectedEndpoint, EndpointFault> {
        let mut deadline = pin!(self.clock.sleep(timeout));
        // Not `tokio::select!`: it polls nothing once others have used up the task's budget.
        let addresses = match select(pin!(self.resolved_addresses(link)), deadline.as_mut()).await {
            Either::Left((addresses, _)) => addresses.map_err(SendFault::from)?,
            Either::Right(_) => return Err(SendFault::from(NO_NAME_SERVER).into()),
        };
        match select(pin!(self.look_at_addresses(link, &addresses)), deadline).await {
            Either::Left((seen, _)) => seen,
            Either::Right(_) => Err(SendFault::from(SendFailure::ConnectTimedOut).into()),
        }
    }

    async fn look_at_addresses(
        &self,
        link: &Link,
        addresses: &[IpAddr],
    ) -> Result<ConnectedEndpoint, EndpointFault> {
        let policy = &self.shared.policy;
        policy
            .check_addresses(link, addresses)
            .map_err(EndpointFault::address_refused)?;
        let in_turn = addresses_in_turn(addresses, 0);
        let (connected, certificate) = self.connect_and_verify(link, &in_turn).await?;
        Ok(ConnectedEndpoint {
            addresses: addresses.to_vec(),
            connected,
            certificate,
        })
    }

    /// The address that takes a connection, and the validity of the certificate there.
    async fn connect_and_verify(
        &self,
        link: &Link,
        addresses: &[IpAddr],
    ) -> Result<(IpAddr, Option<CertificateTimes>), SendFault> {
        let tls = self.shared.tls.without_sessions();
        let tls = &tls;
        connect_and(
            &self.pool,
            &self.clock,
            link,
            addresses,
            |address, PlacedSocket { stream, .. }| async move {
                if !link.is_tls {
                    return Ok((address, None));
                }
                let stream = shake_hands(tls, link, stream, address).await?;
                let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                Ok((address, chain.first().and_then(certificate_times)))
            },
        )
        .await
    }
}
