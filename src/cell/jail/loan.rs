//! What two processes of one user say to each other when one lends the other a sandbox: an order, and what was found for it.
//!
//! SECURITY: both are of the same user, which is looked at before a word is read ([`resident`](crate::resident)). An order names what the
//! sandbox sees and starts; its owner could start the same without us.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use jail::{Loan, Missing, Origin, Policy, View, codec, fields, wire};
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::ahead::Waiting;
use super::prestarted::{Prestarted, Walls};
use super::setup::{AsyncCell, Started};
use super::source::BorrowedFrom;
use crate::cell::{Ahead, Channel, Launch, Pending, Prestart, Requirement, Start, Streams};
use crate::resident;

/// What a sandbox is asked for with. Everything that decides what it is like.
#[derive(Debug, PartialEq)]
pub struct Order {
    /// Which build of hotcell asks: another may mean something else by the same words.
    pub build: String,
    pub origin: Origin,
    pub view: View,
    /// Of a new one, if none waits.
    pub policy: Policy,
    pub has_input: bool,
    /// The runtime that it may have started, and what of that a program begins with.
    pub prestart: Option<Prestart>,
}

fields!(Order {
    build,
    origin,
    view,
    policy,
    has_input,
    prestart,
});
fields!(Prestart {
    zygote,
    limits,
    weight,
    listens,
    prelude,
    ahead,
});
fields!(Ahead {
    packages,
    imports,
    code,
    rest,
});

impl Order {
    /// What `start` needs, if another process can have it. Folders that a caller grants are for the sandboxes of its own process.
    pub fn of(start: &Start<'_>) -> Option<Self> {
        let launch = start.launch;
        if !launch.view.mounts.is_empty() || !jail::can_give(&launch.limits) {
            return None;
        }
        let is_usual = start.requirement == Requirement::default();
        // What is the program's alone is told to the sandbox, not to who makes it.
        let prestart = launch.waiting_runtime().map(|prestart| Prestart {
            prelude: String::new(),
            ahead: prestart
                .ahead
                .clone()
                .filter(|_| is_usual)
                .map(|ahead| Ahead {
                    rest: String::new(),
                    ..ahead
                }),
            ..prestart.clone()
        });
        Some(Self {
            build: resident::build(),
            origin: Origin::here().ok()?,
            view: launch.view.clone(),
            policy: Policy {
                loaded: super::loaded(launch),
                ..super::policy(launch)
            },
            has_input: start.has_input,
            prestart,
        })
    }

    /// Whether what we make of it is what the process that asks would make.
    pub fn is_ours(&self) -> bool {
        let is_same = Origin::here().is_ok_and(|here| here == self.origin);
        let limits = self.prestart.iter().map(|it| &it.limits);
        let mut limits = limits.chain([&self.policy.limits]);
        let is_plain = self.view.mounts.is_empty();
        self.build == resident::build() && is_same && is_plain && limits.all(jail::can_give)
    }

    /// As much of a launch as decides where its sandbox comes from.
    pub fn launch(&self) -> Launch {
        let mut launch = Launch::new(Vec::new()).limits(self.policy.limits.clone());
        launch.view = self.view.clone();
        launch.prestart = self.prestart.clone();
        launch
    }
}

/// What is said of the sandbox that was found.
struct Answer {
    loan: Loan,
    missing: Vec<Missing>,
    landlock: u8,
    seccomp: bool,
    is_warm: bool,
    has_pending: bool,
    has_channel: bool,
}

fields!(Answer {
    loan,
    missing,
    landlock,
    seccomp,
    is_warm,
    has_pending,
    has_channel,
});

/// A sandbox for one program, from wherever it comes.
pub enum Found {
    /// It waits for its start message; whether it has started its runtime.
    Prestarted(Box<Prestarted>, bool),
    /// It has done what its program begins with.
    Ahead(Box<Waiting>),
}

impl Found {
    /// Sends it over `line`. What is left is the sandbox alone, which ends when that is dropped.
    pub fn send(self, line: &OwnedFd) -> io::Result<jail::Cell> {
        let (cell, streams, walls, channel, is_warm) = match self {
            Self::Prestarted(it, is_warm) => (it.cell, it.streams, it.walls, None, is_warm),
            Self::Ahead(it) => {
                let Started { cell, streams, .. } = it.started;
                (cell, streams, it.walls, Some(it.channel), true)
            }
        };
        let (loan, mut fds) = cell.inner.lend()?;
        fds.extend(streams.stdin.iter().map(AsFd::as_fd));
        fds.extend([streams.stdout.as_fd(), streams.stderr.as_fd()]);
        fds.extend(streams.pending.iter().map(AsFd::as_fd));
        let ends = channel
            .as_ref()
            .map(|it| [it.calls.as_fd(), it.answers.as_fd()]);
        fds.extend(ends.into_iter().flatten());
        let answer = Answer {
            loan,
            missing: walls.missing,
            landlock: walls.landlock,
            seccomp: walls.seccomp,
            is_warm,
            has_pending: streams.pending.is_some(),
            has_channel: channel.is_some(),
        };
        wire::send(line.as_fd(), &codec::to_bytes(&answer), &fds)?;
        Ok(cell.inner)
    }

    /// Takes what came over `line`, for a program with these streams.
    pub fn receive(message: wire::Message, line: OwnedFd, has_input: bool) -> io::Result<Self> {
        let answer: Answer = codec::from_bytes(&message.bytes)?;
        let mut fds = message.fds.into_iter();
        let (inner, cgroups) = jail::Cell::borrowed(answer.loan, &mut fds, line)?;
        let mut next = || {
            fds.next()
                .ok_or(io::Error::from(io::ErrorKind::InvalidData))
        };
        let streams = Streams {
            stdin: match has_input {
                true => Some(pipe::Sender::from_owned_fd(next()?)?),
                false => None,
            },
            stdout: pipe::Receiver::from_owned_fd(next()?)?,
            stderr: pipe::Receiver::from_owned_fd(next()?)?,
            pending: match answer.has_pending {
                true => Some(Pending::received(next()?)),
                false => None,
            },
            terminal: None,
        };
        let channel = match answer.has_channel {
            true => Some(Channel::new(next()?, next()?)?),
            false => None,
        };
        let cell = AsyncCell::new(inner, Arc::new(BorrowedFrom(cgroups)));
        let cell = cell.map_err(io::Error::other)?;
        let walls = Walls {
            missing: answer.missing,
            landlock: answer.landlock,
            seccomp: answer.seccomp,
        };
        Ok(match channel {
            Some(channel) => {
                let isolation = cell.isolation(&walls);
                let started = Started {
                    cell,
                    streams,
                    isolation,
                };
                Self::Ahead(Box::new(Waiting {
                    started,
                    channel,
                    walls,
                }))
            }
            None => {
                let prestarted = Prestarted {
                    cell,
                    streams,
                    walls,
                };
                Self::Prestarted(Box::new(prestarted), answer.is_warm)
            }
        })
    }
}

/// One end of what they talk over.
pub struct Line(AsyncFd<OwnedFd>);

impl Line {
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "sound for an `OwnedFd`: it stays open as what it is"
        )]
        let line = AsyncFd::with_interest(socket, Interest::READABLE);
        line.map(Self)
    }

    pub fn socket(&self) -> &OwnedFd {
        self.0.get_ref()
    }

    pub fn into_socket(self) -> OwnedFd {
        self.0.into_inner()
    }

    /// The next message; none when the other end is closed. Cancel safe.
    pub async fn receive(&self) -> io::Result<Option<wire::Message>> {
        let take = |socket: &OwnedFd| wire::receive(socket.as_fd(), RecvFlags::DONTWAIT);
        self.0.async_io(Interest::READABLE, take).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jail::Limits;

    #[test]
    fn an_order_survives_the_trip_and_nothing_shorter_is_one() {
        let order = Order {
            build: resident::build(),
            origin: Origin::here().unwrap(),
            view: View::default(),
            policy: super::super::policy(&Launch::new(vec!["/usr/bin/python3".to_owned()])),
            has_input: true,
            prestart: None,
        };
        let bytes = codec::to_bytes(&order);
        assert_eq!(codec::from_bytes::<Order>(&bytes).unwrap(), order);
        for length in 0..bytes.len() {
            assert!(codec::from_bytes::<Order>(&bytes[..length]).is_err());
        }
        assert!(order.is_ours());
    }

    #[test]
    fn an_order_of_another_build_or_place_is_not_ours() {
        let order = || {
            let launch = Launch::new(Vec::new());
            Order {
                build: resident::build(),
                origin: Origin::here().unwrap(),
                view: View::default(),
                policy: super::super::policy(&launch),
                has_input: false,
                prestart: None,
            }
        };
        assert!(order().is_ours());
        let build = "another".to_owned();
        assert!(!Order { build, ..order() }.is_ours());
        let mut mounts = order();
        mounts.view.mounts.push(jail::Mount {
            host: "/home".into(),
            cell: "/home".into(),
            access: jail::Access::Write,
        });
        assert!(!mounts.is_ours(), "a folder of the host");
        let mut more = order();
        more.policy.limits = Limits {
            open_files: u64::MAX - 1,
            ..Limits::default()
        };
        assert!(!more.is_ours(), "more than this process may give");
    }
}
