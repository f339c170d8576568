//! The way out of a cell: a proxy that reaches the hosts a run was granted, and no others.
//!
//! A cell has a network namespace with nothing but its own loopback in it. A run that
//! was granted hosts gets a socket that listens there and belongs to us; programs find
//! it by the usual variables. One that ignores them has no other way.
//!
//! A host is read once ([`Target`](crate::request::Target)), compared with the grant,
//! resolved here, and refused if any of its addresses is not public; what is dialled is
//! the address that was checked. TLS is passed on unread, unless a secret is bound to
//! its host ([`Authority`]).

mod address;
mod authority;
mod dial;
mod hello;
mod proxy;
mod report;
mod scrub;
mod secure;
mod tunnel;
mod wanted;

pub use authority::Authority;
pub use proxy::EgressProxy;
pub use report::{Denied, Reached, Reason, Report};
pub use scrub::Scrubber;
pub use wanted::wanted;
