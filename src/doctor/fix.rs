//! Why this host makes no cell at all, and which setting would change that.
//!
//! The kernel says little: EPERM for a dozen reasons, ENOSPC for a number that is
//! too small. So we read what the host has set and name exactly that.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use jail::JailError;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

use crate::cell::CellError;
use crate::hint::Surface;

/// What decides about namespaces here.
#[derive(Debug, Default)]
pub struct Host {
    /// Settings of the kernel by name, as far as it has them.
    settings: BTreeMap<&'static str, String>,
    /// We are root, but not the host's: of a user namespace, or of a container
    /// that keeps some rights back.
    is_weak_root: bool,
    /// The AppArmor profile that we are confined by.
    profile: Option<String>,
}

const CLONE: &str = "kernel.unprivileged_userns_clone";
const APPARMOR: &str = "kernel.apparmor_restrict_unprivileged_userns";
const MOST: [&str; 6] = [
    "user.max_user_namespaces",
    "user.max_mnt_namespaces",
    "user.max_pid_namespaces",
    "user.max_net_namespaces",
    "user.max_ipc_namespaces",
    "user.max_uts_namespaces",
];

impl Host {
    pub fn look() -> Self {
        let read = |name: &'static str| {
            let path = format!("/proc/sys/{}", name.replace('.', "/"));
            let text = fs::read_to_string(path).ok()?;
            Some((name, text.trim().to_owned()))
        };
        let names = [CLONE, APPARMOR].into_iter().chain(MOST);
        Self {
            settings: names.filter_map(read).collect(),
            is_weak_root: rustix::process::geteuid().is_root() && !has_all_rights(),
            profile: profile(),
        }
    }

    fn has_set(&self, name: &str, value: &str) -> bool {
        self.settings.get(name).is_some_and(|now| now == value)
    }
}

/// As in `docker-default (enforce)`; none if nothing is enforced.
fn profile() -> Option<String> {
    let text = fs::read_to_string("/proc/self/attr/apparmor/current").ok()?;
    let name = text.trim().strip_suffix(" (enforce)")?;
    Some(name.to_owned())
}

fn has_all_rights() -> bool {
    let ids = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let all_ids = ids.split_whitespace().eq(["0", "0", "4294967295"]);
    let own = capabilities(None);
    all_ids && own.is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// What to change so that a cell can be made.
pub fn fix(error: &CellError, host: &Host) -> String {
    let exact = match error {
        CellError::Jail(JailError::Step { step, source }) => by_error(step, source, host),
        CellError::Jail(JailError::Talk(source)) => by_error("", source, host),
        _ => None,
    };
    let own = error
        .hint()
        .unwrap_or("Run it again; if the problem stays, report it.".into());
    exact.unwrap_or_else(|| own.words(Surface::CommandLine))
}

fn by_error(step: &str, source: &io::Error, host: &Host) -> Option<String> {
    let errno = source.raw_os_error()?;
    let is = |error: Errno| error.raw_os_error() == errno;
    if host.is_weak_root && (is(Errno::PERM) || is(Errno::INVAL)) {
        return Some(
            "Root has not all of root's rights here, as in a container: start hotcell as an \
             ordinary user instead (or as the host's root), which needs no rights at all."
                .to_owned(),
        );
    }
    if is(Errno::NOSPC) {
        return Some(no_room(host));
    }
    if is(Errno::PERM) || is(Errno::ACCESS) {
        return Some(forbidden(host));
    }
    if step.contains("namespace") && (is(Errno::INVAL) || is(Errno::NOSYS)) {
        return Some(
            "Use a kernel built with CONFIG_USER_NS, CONFIG_PID_NS and CONFIG_NET_NS.".to_owned(),
        );
    }
    // Of the calls that a sandbox is made with, `mount_setattr` is the newest.
    is(Errno::NOSYS).then(|| "Use a newer kernel, Linux 5.12 at least.".to_owned())
}

fn no_room(host: &Host) -> String {
    let none = MOST.iter().filter(|name| host.has_set(name, "0"));
    let none: Vec<String> = none
        .map(|name| format!("`sysctl -w {name}=15000` (it is 0)"))
        .collect();
    if !none.is_empty() {
        return format!("As root of the host: {}.", none.join(" and "));
    }
    let most = MOST[0];
    let now = host.settings.get(most).map_or("unknown", String::as_str);
    format!(
        "Raise {most} (now {now}), or end what uses user namespaces: all that it allows are in use."
    )
}

fn forbidden(host: &Host) -> String {
    let mut ways = Vec::new();
    if host.has_set(CLONE, "0") {
        ways.push(format!("`sysctl -w {CLONE}=1` (it is 0)"));
    }
    if host.has_set(APPARMOR, "1") {
        ways.push(format!(
            "`sysctl -w {APPARMOR}=0` (it is 1), or an AppArmor profile for hotcell with the rule `userns,`"
        ));
    }
    if let Some(profile) = &host.profile {
        ways.push(format!(
            "the rule `userns,` in the AppArmor profile `{profile}`, which confines hotcell"
        ));
    }
    if !ways.is_empty() {
        return format!("As root of the host: {}.", ways.join(" and "));
    }
    "No setting of the kernel forbids it, so something around us does: a container's seccomp \
     profile (start it with `--security-opt seccomp=unconfined`), SELinux, or a chroot."
        .to_owned()
}

#[cfg(test)]
mod tests;
