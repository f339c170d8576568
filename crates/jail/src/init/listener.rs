//! The loopback listener of a cell: a port of its own loopback at which the server listens.
//!
//! The socket is made here, in the cell's network namespace, and given away before the
//! program exists. What connects to it talks to the server; nothing of the host's
//! network is in reach of either end by itself.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use crate::spec::{Missing, Wall};

/// Connections that wait for the server.
const BACKLOG: i32 = 128;

/// Opens the port.
///
/// SECURITY: without a network namespace it would be one of the host's, and a cell
/// that reaches every network needs no listener.
pub fn open(port: u16, missing: &[Missing]) -> io::Result<OwnedFd> {
    if missing.iter().any(|missing| missing.wall == Wall::Network) {
        return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
    }
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    // Connections of the namespace's last cell may still be remembered.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}
