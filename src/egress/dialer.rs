//! From a granted host to a connection: resolved once, checked, and dialled at what was checked.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::address::{Reach, is_own};
use crate::request::{Host, Name, Target};

const RESOLVE: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(10);
/// Addresses of one host that are tried.
const TRIED: usize = 4;

/// Names to addresses, as this host is configured to find them. Never by the C library,
/// which in a static binary must not be asked.
#[derive(Default)]
pub struct Dialer(OnceCell<TokioResolver>);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("its address is not public")]
    Private,
    #[error("its name could not be resolved")]
    Unresolved,
    #[error("could not connect: {0}")]
    Connect(io::Error),
}

impl Dialer {
    /// `private` lets a host be at an address of a private network.
    pub async fn dial(&self, target: &Target, private: bool) -> Result<TcpStream, DialError> {
        let addresses = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => timeout(RESOLVE, self.resolve(name))
                .await
                .unwrap_or_default(),
        };
        if addresses.is_empty() {
            return Err(DialError::Unresolved);
        }
        // SECURITY: one bad address among good ones is a trick, not a mistake.
        if !addresses.iter().all(|address| may_dial(*address, private)) {
            return Err(DialError::Private);
        }
        let mut last = io::ErrorKind::TimedOut.into();
        for address in addresses.into_iter().take(TRIED) {
            let connecting = TcpStream::connect(SocketAddr::new(address, target.port));
            match timeout(CONNECT, connecting).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => last = error,
                Err(_) => {}
            }
        }
        Err(DialError::Connect(last))
    }

    async fn resolve(&self, name: &Name) -> Vec<IpAddr> {
        let make = async || {
            let mut builder = TokioResolver::builder_tokio()?;
            builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
            builder.build()
        };
        let Ok(resolver) = self.0.get_or_try_init(make).await else {
            return Vec::new();
        };
        // The dot: a granted name is the whole name, and is not searched for.
        match resolver.lookup_ip(format!("{name}.")).await {
            Ok(found) => {
                let mut addresses: Vec<IpAddr> = found.iter().collect();
                // Most hosts reach the first kind for sure.
                addresses.sort_by_key(IpAddr::is_ipv6);
                addresses.dedup();
                addresses
            }
            Err(_) => Vec::new(),
        }
    }
}

fn may_dial(address: IpAddr, private: bool) -> bool {
    match Reach::of(address) {
        Reach::Public => private || !is_own(address),
        Reach::Private => private,
        Reach::Never => false,
    }
}
