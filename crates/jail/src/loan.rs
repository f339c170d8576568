//! A cell that one process of a user's has made and another holds.
//!
//! The server that made it keeps what only a parent can do: it reaps the cell and frees its slot when the other closes the socket that
//! they talk over. All else goes to the other as file descriptors: it starts the program, watches it and ends it. If either of them dies,
//! the cell does.
//!
//! SECURITY: whoever gets these descriptors can do with the cell what the server can. They go to a process of the same user and to no other,
//! which the server makes sure of before it calls this.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::cell::{Cell, Folders, Sent};
use crate::cgroup::{Cgroup, Cgroups, LentCgroup};
use crate::codec::fields;
use crate::proc_usage::ProcUsage;

/// What is said of a cell that is lent, beside its file descriptors.
#[derive(Debug, PartialEq)]
pub struct Loan {
    uid: Option<u32>,
    cgroup: Option<LentCgroup>,
    /// Of the server's cgroups, for people to read.
    reason: String,
    has_listener: bool,
    has_terminal: bool,
    /// How many folders tell what it uses.
    folders: u8,
}

fields!(Loan {
    uid,
    cgroup,
    reason,
    has_listener,
    has_terminal,
    folders,
});

/// What a cell that another process has made has in place of a slot of ours.
pub struct Lent {
    pub cgroup: Option<Cgroup>,
    /// Closed when the cell is not needed any more.
    _line: OwnedFd,
}

impl Cell {
    /// What another process has to know to hold this cell, which waits for its start message, and the file descriptors that go with it.
    pub fn lend(&self) -> io::Result<(Loan, Vec<BorrowedFd<'_>>)> {
        let absent = || io::Error::from(io::ErrorKind::NotConnected);
        let (host, _) = self.made_by.as_ref().ok_or_else(absent)?;
        let folders = self.folders.as_ref().ok_or_else(absent)?;
        let lease = self.lease.as_ref().ok_or_else(absent)?;
        let status = self.status.as_ref().ok_or_else(absent)?;
        let mut fds = vec![status.as_fd(), self.init()?, folders.workspace.as_fd()];
        let listener = self.listener.here();
        let terminal = self.terminal.here();
        fds.extend(listener.iter().chain(&terminal));
        let counted: Vec<_> = folders.usage.folders().collect();
        let loan = Loan {
            uid: self.uid,
            cgroup: lease.cgroup.as_ref().map(Cgroup::lend),
            reason: host.cgroups().reason().to_owned(),
            has_listener: listener.is_some(),
            has_terminal: terminal.is_some(),
            folders: counted.len() as u8,
        };
        fds.extend(counted);
        Ok((loan, fds))
    }

    /// A cell that another process has lent over `line`, of the file descriptors in the order in which [`Cell::lend`] has them; and the cgroups
    /// that bound it.
    pub fn borrowed(
        loan: Loan,
        fds: &mut impl Iterator<Item = OwnedFd>,
        line: OwnedFd,
    ) -> io::Result<(Self, Cgroups)> {
        let mut next = || {
            fds.next()
                .ok_or(io::Error::from(io::ErrorKind::InvalidData))
        };
        let (status, pidfd, workspace) = (next()?, next()?, next()?);
        let listener = Sent::of(loan.has_listener.then(&mut next).transpose()?);
        let terminal = Sent::of(loan.has_terminal.then(&mut next).transpose()?);
        let counted = (0..loan.folders).map(|_| next());
        let counted = counted.collect::<io::Result<_>>()?;
        let cgroups = Cgroups::lent(loan.cgroup.as_ref(), loan.reason);
        let cell = Self {
            made_by: None,
            status: Some(status),
            lease: None,
            lent: Some(Lent {
                cgroup: loan.cgroup.map(Cgroup::borrowed),
                _line: line,
            }),
            pidfd: Some(pidfd),
            folders: Some(Folders {
                workspace,
                usage: Arc::new(ProcUsage::new(counted, false)),
            }),
            listener,
            terminal,
            uid: loan.uid,
            is_empty: false,
            is_guest: false,
            control: None,
            aside: Default::default(),
        };
        Ok((cell, cgroups))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::check;
    use crate::policy::Limits;

    #[test]
    fn a_loan_survives_the_trip_and_no_damage_panics() {
        check(&Loan {
            uid: Some(7),
            cgroup: Some(LentCgroup {
                is_unified: true,
                memory: "/sys/fs/cgroup/a".into(),
                pids: "/sys/fs/cgroup/a".into(),
                cpu: None,
                limits: Some(Limits::default()),
            }),
            reason: "cgroup v2".to_owned(),
            has_listener: true,
            has_terminal: false,
            folders: 3,
        });
    }

    #[test]
    fn a_loan_with_too_few_file_descriptors_is_refused() {
        let loan = |folders| Loan {
            uid: None,
            cgroup: None,
            reason: String::new(),
            has_listener: false,
            has_terminal: false,
            folders,
        };
        let fds = |count: usize| {
            let null = || std::fs::File::open("/dev/null").unwrap().into();
            (0..count).map(move |_| null()).collect::<Vec<OwnedFd>>()
        };
        let line = || fds(1).remove(0);
        let borrow = |folders, count| {
            let mut fds = fds(count).into_iter();
            Cell::borrowed(loan(folders), &mut fds, line()).is_ok()
        };
        assert!(borrow(0, 3) && borrow(2, 5));
        assert!(!borrow(0, 2) && !borrow(2, 4) && !borrow(255, 5));
    }
}
