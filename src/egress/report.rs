//! What a run asked of its network, for its caller to read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::request::Target;

/// How many hosts of each kind are named; a program may ask for a million.
const NAMED: usize = 50;
/// What is quoted of a host that is none.
const QUOTED: usize = 80;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Requests that were refused, by host, in the order of the first of each.
    pub denied: Vec<Denied>,
    pub reached: Vec<Reached>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// It moved as many bytes as it may, or made as many connections.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub limit_reached: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denied {
    /// As in `example.com:443`.
    pub host: String,
    pub reason: Reason,
    /// What to grant so that it is allowed, if that is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    pub times: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reached {
    pub host: String,
    pub connections: u64,
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    NotGranted,
    PrivateAddress,
    BadHost,
    OtherTlsName,
    NotTls,
    OtherHostHeader,
}

impl Reason {
    pub fn words(self) -> &'static str {
        match self {
            Self::NotGranted => "it is not granted to this run",
            Self::PrivateAddress => "its address is not public",
            Self::BadHost => "it is not a host",
            Self::OtherTlsName => "the TLS handshake names another host",
            Self::NotTls => "the program does not use TLS",
            Self::OtherHostHeader => "the request's `Host` names another host",
        }
    }
}

/// The same while the run goes on.
#[derive(Default)]
pub struct Ledger {
    hosts: Mutex<Hosts>,
    exhausted: AtomicBool,
    pub sent: Count,
    pub received: Count,
}

#[derive(Default)]
struct Hosts {
    denied: Vec<Denied>,
    reached: BTreeMap<Target, u64>,
}

/// Bytes in one direction.
#[derive(Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to the count; false once it is beyond `most`.
    pub fn add(&self, bytes: usize, most: u64) -> bool {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64 <= most
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Ledger {
    pub fn deny(&self, host: &str, grant: Option<String>, reason: Reason) {
        let host: String = host.chars().take(QUOTED).collect();
        let mut hosts = self.lock();
        let known = |denied: &&mut Denied| denied.host == host && denied.reason == reason;
        if let Some(denied) = hosts.denied.iter_mut().find(known) {
            denied.times += 1;
        } else if hosts.denied.len() < NAMED {
            hosts.denied.push(Denied {
                host,
                reason,
                grant,
                times: 1,
            });
        }
    }

    pub fn reach(&self, target: &Target) {
        let mut hosts = self.lock();
        if let Some(count) = hosts.reached.get_mut(target) {
            *count += 1;
        } else if hosts.reached.len() < NAMED {
            hosts.reached.insert(target.clone(), 1);
        }
    }

    pub fn exhaust(&self) {
        self.exhausted.store(true, Ordering::Relaxed);
    }

    pub fn report(&self, most: u64) -> Report {
        let hosts = self.lock();
        let reached = hosts.reached.iter().map(|(target, connections)| Reached {
            host: target.to_string(),
            connections: *connections,
        });
        let (bytes_sent, bytes_received) = (self.sent.get(), self.received.get());
        Report {
            denied: hosts.denied.clone(),
            reached: reached.collect(),
            bytes_sent,
            bytes_received,
            limit_reached: bytes_sent > most
                || bytes_received > most
                || self.exhausted.load(Ordering::Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
