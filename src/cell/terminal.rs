//! Our end of the terminal that a program is started at. What is read there is the program's; what is written there, it reads as typed.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, SpecialCodeIndex, Winsize, tcgetattr, tcsetwinsize};
use tokio::net::unix::pipe;

#[derive(Clone)]
pub struct TerminalEnd {
    // Only what is told of readiness is used of these: no pipe has reads and writes at one end.
    reader: Arc<pipe::Receiver>,
    writer: Arc<pipe::Sender>,
}

impl TerminalEnd {
    /// Of a file descriptor that does not block.
    pub fn new(end: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            writer: Arc::new(pipe::Sender::from_owned_fd_unchecked(end.try_clone()?)?),
            reader: Arc::new(pipe::Receiver::from_owned_fd_unchecked(end)?),
        })
    }

    /// Reads what there is into `buffer`; 0 when the program has closed the other end.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.reader.readable().await?;
            match self.reader.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // How the kernel says that nobody has the other end open.
                Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    return Ok(0);
                }
                read => return read,
            }
        }
    }

    /// Writes some of what was typed; how much.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.writer.writable().await?;
            match self.writer.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }

    pub fn resize(&self, (rows, columns): (u16, u16)) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // A program that has gone needs none.
        let _ = tcsetwinsize(&*self.reader, size);
    }

    /// The key that interrupts the program, unless the program reads it as any other.
    pub fn interrupt_key(&self) -> Option<u8> {
        let modes = tcgetattr(&*self.reader).ok()?;
        let interrupts = modes.local_modes.contains(LocalModes::ISIG);
        interrupts.then(|| modes.special_codes[SpecialCodeIndex::VINTR])
    }

    /// Whether there is something that nobody has read yet.
    pub fn has_unread(&self) -> bool {
        let mut fds = [PollFd::new(&*self.reader, PollFlags::IN)];
        let polled = poll(&mut fds, Some(&Timespec::default()));
        polled.is_ok() && fds[0].revents().contains(PollFlags::IN)
    }
}
