//! TLS to a host, where the proxy speaks it itself: for a request that carries a secret, and for
//! one that names an `https://` URL instead of asking for a tunnel.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::certificate_authority::bare;
use crate::request::Target;

/// The client's side of TLS, made when it is first needed: it reads this host's authorities.
#[derive(Default)]
pub struct TlsClient(OnceCell<Arc<ClientConfig>>);

impl TlsClient {
    /// Speaks to `target`, which shows a certificate that this host trusts.
    pub async fn connect(
        &self,
        target: &Target,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let make = async || {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let provider = Arc::new(ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()?
                .with_root_certificates(roots)
                .with_no_client_auth();
            Ok::<_, rustls::Error>(Arc::new(config))
        };
        let config = self.0.get_or_try_init(make).await;
        let config = config.map_err(io::Error::other)?.clone();
        let name = ServerName::try_from(bare(&target.host)).map_err(io::Error::other)?;
        TlsConnector::from(config).connect(name, stream).await
    }
}
