//! Datagrams with file descriptors on a socket pair.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

/// More file descriptors than any of our messages has.
const MAX_FDS: usize = 16;
/// Bytes of a message. A longer one is not sent: whoever receives it would have its beginning.
pub const MAX_BYTES: usize = 4096;

/// One message and the file descriptors that came with it.
pub struct Message {
    pub bytes: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

/// Two ends that keep message boundaries and notice when the other is gone.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if bytes.len() > MAX_BYTES {
        return Err(Errno::MSGSIZE.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let data = [IoSlice::new(bytes)];
    loop {
        match sendmsg(socket, &data, &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => continue,
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Receives one message; `None` when the other end is gone.
pub fn receive(socket: BorrowedFd<'_>, flags: RecvFlags) -> io::Result<Option<Message>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; MAX_BYTES];
    let length = loop {
        let mut data = [IoSliceMut::new(&mut bytes)];
        match recvmsg(
            socket,
            &mut data,
            &mut control,
            flags | RecvFlags::CMSG_CLOEXEC,
        ) {
            // The other end died with a message of ours unread. That is said once, and
            // before what it sent us itself.
            Err(Errno::INTR | Errno::CONNRESET) => continue,
            // The kernel drops file descriptors that we have no room for, and says it here alone.
            Ok(received) if received.flags.contains(ReturnFlags::CTRUNC) => {
                return Err(Errno::MFILE.into());
            }
            other => break other?.bytes,
        }
    };
    if length == 0 {
        return Ok(None);
    }
    bytes.truncate(length);
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    Ok(Some(Message { bytes, fds }))
}
