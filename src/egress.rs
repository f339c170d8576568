//! The egress proxy of a sandbox: it reaches the hosts a run was granted, and no others.
//!
//! A cell has a network namespace with nothing but its own loopback in it. A run that
//! was granted hosts gets a socket that listens there and belongs to us; programs find
//! it by the usual variables. One that ignores them has no other way.
//!
//! A host is read once ([`Target`](crate::request::Target)), compared with the grant,
//! resolved here, and refused if any of its addresses is not public; what is dialled is
//! the address that was checked. TLS is passed on unread, unless a secret is bound to
//! its host ([`CertificateAuthority`]).

mod address;
mod authorities;
mod certificate_authority;
mod client_hello;
mod dialer;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod grant;
mod missing_network;
mod proxy;
mod report;
mod tls_client;
mod tunnel;

pub use authorities::{Authorities, KEY_STORE};
pub use certificate_authority::{CertificateAuthority, Error as CertificateError};
pub use grant::Egress;
pub use missing_network::missing_network;
pub use proxy::EgressProxy;
pub use report::{Denied, Report};
