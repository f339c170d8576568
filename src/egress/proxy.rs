//! HTTP as a proxy speaks it: CONNECT, and requests for whole URLs.

mod forward;
mod inject;
mod refusal;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::header;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::certificate_authority::CertificateAuthority;
use super::dialer::{DialError, Dialer};
use super::grant::Egress;
use super::report::{Ledger, Reason, Report};
use super::tls_client::TlsClient;
use super::tunnel::{self, Meter};
use crate::loopback::{self, Body, Connection, Http, Service, full};
use crate::request::Target;
use crate::secret::Secret;
pub use refusal::Refusal;

/// The proxy of one run.
pub struct EgressProxy {
    egress: Egress,
    dialer: Dialer,
    /// Of a run with secrets.
    authority: Option<Arc<CertificateAuthority>>,
    tls: TlsClient,
    /// Who answers what is asked at this port, but not of a proxy.
    other: Option<Arc<dyn Http>>,
    ledger: Ledger,
}

/// What CONNECT was answered with; begins when the answer is sent.
enum Tunnel {
    Carry(OnUpgrade, TcpStream, Target),
    /// Port 80 speaks HTTP, and is read as such: `Host` could name another. So is the
    /// inside of TLS to a host that a secret is bound to.
    Read(OnUpgrade, Target, Scheme),
}

/// How a host is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// The port that goes without saying.
    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl EgressProxy {
    pub fn new(
        egress: Egress,
        authority: Option<Arc<CertificateAuthority>>,
        other: Option<Arc<dyn Http>>,
    ) -> Self {
        Self {
            egress,
            dialer: Dialer::default(),
            authority,
            tls: TlsClient::default(),
            other,
            ledger: Ledger::default(),
        }
    }

    /// What was asked for until now.
    pub fn report(&self) -> Report {
        self.ledger.report(self.egress.transfer)
    }

    pub(super) async fn serve(
        self: Arc<Self>,
        connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) {
        let tunnel = Mutex::new(None);
        let answer = |request| async {
            let answer = self.answer(request, &tunnel).await;
            Ok::<_, Infallible>(answer.unwrap_or_else(|refusal| self.refuse(refusal)))
        };
        let serving = server()
            .serve_connection(TokioIo::new(connection), service_fn(answer))
            .with_upgrades();
        // A connection that breaks has been answered as far as it could be.
        let _ = serving.await;
        let tunnel = tunnel.into_inner().unwrap_or_else(PoisonError::into_inner);
        match tunnel {
            Some(Tunnel::Carry(upgrade, server, target)) => {
                if let Ok(client) = upgrade.await {
                    self.carry(client, server, target).await;
                }
            }
            Some(Tunnel::Read(upgrade, target, scheme)) => {
                if let Ok(client) = upgrade.await {
                    self.read(client, target, scheme).await;
                }
            }
            None => {}
        }
    }

    async fn answer(
        self: &Arc<Self>,
        mut request: Request<Incoming>,
        tunnel: &Mutex<Option<Tunnel>>,
    ) -> Result<Response<Body>, Refusal> {
        // A proxy is asked for a host; this one asks us.
        if let (None, Some(other)) = (request.uri().authority(), &self.other) {
            return Ok(other.clone().answer(request).await);
        }
        if request.method() != Method::CONNECT {
            let (target, scheme) = self.target_of(&request)?;
            return self.forward(request, target, scheme).await;
        }
        let target = self.read_target(&request, None)?;
        let upgrade = hyper::upgrade::on(&mut request);
        let wanted = match target.port {
            80 => {
                self.check(&target)?;
                Tunnel::Read(upgrade, target, Scheme::Http)
            }
            _ if self.secrets_for(&target, Scheme::Https).next().is_some() => {
                self.check(&target)?;
                Tunnel::Read(upgrade, target, Scheme::Https)
            }
            _ => {
                let stream = self.dial(&target).await?;
                Tunnel::Carry(upgrade, stream, target)
            }
        };
        *tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(wanted);
        Ok(Response::new(full("")))
    }

    async fn carry(&self, client: Upgraded, server: TcpStream, target: Target) {
        let meter = Meter {
            sent: &self.ledger.sent,
            received: &self.ledger.received,
            most: self.egress.transfer,
        };
        let carried = tunnel::carry(TokioIo::new(client), server, &target, meter).await;
        if let Err(reason) = carried {
            self.ledger.deny(&target.to_string(), None, reason);
        }
    }

    /// Serves the requests inside a tunnel, which are all for `target`.
    async fn read(self: &Arc<Self>, client: Upgraded, target: Target, scheme: Scheme) {
        match (scheme, &self.authority) {
            (Scheme::Http, _) => self.read_inside(client, &target, scheme).await,
            (Scheme::Https, Some(authority)) => {
                let Ok(acceptor) = authority.acceptor(&target) else {
                    return;
                };
                // A client that does not trust us says so itself.
                if let Ok(client) = acceptor.accept(TokioIo::new(client)).await {
                    self.read_inside(TokioIo::new(client), &target, scheme)
                        .await;
                }
            }
            (Scheme::Https, None) => {}
        }
    }

    async fn read_inside(
        self: &Arc<Self>,
        client: impl Read + Write + Unpin + Send + 'static,
        target: &Target,
        scheme: Scheme,
    ) {
        let answer = |request: Request<Incoming>| async {
            let answer = match says_another(&request, target, scheme) {
                true => Err(Refusal::Denied(target.clone(), Reason::OtherHostHeader)),
                false => self.forward(request, target.clone(), scheme).await,
            };
            Ok::<_, Infallible>(answer.unwrap_or_else(|refusal| self.refuse(refusal)))
        };
        let _ = server().serve_connection(client, service_fn(answer)).await;
    }

    /// The secrets that requests to `target` may carry.
    fn secrets_for(&self, target: &Target, scheme: Scheme) -> impl Iterator<Item = &Secret> {
        let secrets = self.egress.secrets.iter();
        secrets.filter(move |secret| match scheme {
            Scheme::Https => secret.is_for(target),
            // SECURITY: by what is spoken, not by the port: `http://host:443` is not encrypted.
            Scheme::Http => secret.is_for_plain(target),
        })
    }

    /// The host of a request for a whole URL.
    fn target_of(&self, request: &Request<Incoming>) -> Result<(Target, Scheme), Refusal> {
        let read = |scheme: Scheme| {
            let target = self.read_target(request, Some(scheme.port()))?;
            Ok((target, scheme))
        };
        match request.uri().scheme_str() {
            Some("http") => read(Scheme::Http),
            // For programs that have no TLS of their own.
            Some("https") => read(Scheme::Https),
            Some(_) => Err(Refusal::Bad(
                "this proxy only forwards http:// and https://",
            )),
            None => Err(Refusal::Bad(
                "this is a proxy: ask for a whole URL, or use CONNECT",
            )),
        }
    }

    /// SECURITY: the host is read here alone; hyper's own reading of it is never used.
    fn read_target(
        &self,
        request: &Request<Incoming>,
        usual: Option<u16>,
    ) -> Result<Target, Refusal> {
        let authority = request.uri().authority().map_or("", |it| it.as_str());
        Target::parse(authority, usual).map_err(|_| {
            self.ledger.deny(authority, None, Reason::BadHost);
            Refusal::Bad("this is not a valid host")
        })
    }

    fn check(&self, target: &Target) -> Result<(), Refusal> {
        match self.egress.network.allows(target) {
            true => Ok(()),
            false => Err(Refusal::Denied(target.clone(), Reason::NotGranted)),
        }
    }

    /// Checks, resolves, checks again and connects.
    async fn dial(&self, target: &Target) -> Result<TcpStream, Refusal> {
        self.check(target)?;
        let private = self.egress.private.iter().any(|it| it.allows(target));
        match self.dialer.dial(target, private).await {
            Ok(stream) => {
                self.ledger.reach(target);
                Ok(stream)
            }
            Err(DialError::Private) => Err(Refusal::Denied(target.clone(), Reason::PrivateAddress)),
            Err(error) => Err(Refusal::Unreachable(target.clone(), error)),
        }
    }
}

impl Service for EgressProxy {
    fn attend(self: Arc<Self>, connection: Connection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.serve(connection))
    }

    fn exhausted(&self) {
        self.ledger.exhaust();
    }
}

/// Whether a request inside a tunnel to `target` is meant for another host.
fn says_another(request: &Request<Incoming>, target: &Target, scheme: Scheme) -> bool {
    let uri = request.uri().authority().map(|it| it.as_str());
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().map(|host| host.to_str().unwrap_or("?"));
    let names = [uri, host].into_iter().flatten();
    let other = |name: &str| Target::parse(name, Some(scheme.port())).as_ref() != Ok(target);
    hosts.next().is_some() || names.into_iter().any(other)
}

fn server() -> http1::Builder {
    let mut server = loopback::http1();
    // Some hosts read names as they were written.
    server.preserve_header_case(true);
    server
}
