//! What every container is started with.

use std::ffi::OsString;
use std::path::Path;

use jail::container::{FOLDER, PROGRAM, hidden_in_proc};
use jail::{Access, Limits, View};
use rustix::process::{Resource, getgid, getrlimit, getuid};

use super::command::{ContainerEngine, EngineKind};
use super::error::ContainerError;
use super::{image, leftovers};

/// Threads of an OCI runtime that count before it is our init.
const FEWEST_TASKS: u64 = 32;
/// Who a program is where no user is named.
const NOBODY: (u32, u32) = (65534, 65534);

impl ContainerEngine {
    /// SECURITY: every container is started with these. Our init looks from inside whether they hold.
    /// `user` is who its processes are, for a server of root's; `folder` has the server's socket.
    pub(super) fn arguments(
        &self,
        view: &View,
        limits: &Limits,
        user: Option<&str>,
        folder: &Path,
        image: &str,
    ) -> Result<Vec<OsString>, ContainerError> {
        let mut words: Vec<OsString> = [
            "run",
            "--detach",
            "--rm",
            "--pull=never",
            "--log-driver=none",
            "--network=none",
            "--ipc=private",
            "--cgroupns=private",
            "--hostname=sandbox",
            "--workdir=/workspace",
            "--read-only",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
        ]
        .map(OsString::from)
        .into();
        let mut word = |text: String| words.push(text.into());
        if self.kind == EngineKind::Podman {
            word("--read-only-tmpfs=false".to_owned());
            word("--http-proxy=false".to_owned());
            // Docker knows no such option, and masks what it does.
            let hidden = hidden_in_proc();
            let hidden: Vec<_> = hidden.iter().map(|it| it.to_string_lossy()).collect();
            word(format!("--security-opt=mask={}", hidden.join(":")));
        }
        if let Some(runtime) = &self.runtime {
            word(format!("--runtime={runtime}"));
        }
        word(format!("--label={}", leftovers::label()));
        match (user, self.kind) {
            (Some(user), _) => word(format!("--user={user}")),
            // That user inside, and the owner of our files outside.
            (None, EngineKind::Podman) => {
                let (uid, gid) = self.user.unwrap_or(NOBODY);
                word(format!("--userns=keep-id:uid={uid},gid={gid}"));
                word(format!("--user={uid}:{gid}"));
            }
            (None, EngineKind::Docker) => {
                let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
                word(format!("--user={uid}:{gid}"));
            }
        }
        word(format!("--memory={}", limits.memory));
        word(format!("--memory-swap={}", limits.memory));
        let tasks = u64::from(limits.tasks).saturating_add(1).max(FEWEST_TASKS);
        word(format!("--pids-limit={tasks}"));
        word(format!("--cpus={:.2}", limits.cpus));
        word(format!("--shm-size={}", limits.shm));
        for (name, resource) in [("nofile", Resource::Nofile), ("nproc", Resource::Nproc)] {
            let wanted = match resource {
                Resource::Nofile => limits.open_files,
                _ => u64::from(limits.tasks) + FEWEST_TASKS,
            };
            // Higher than our own is not ours to give.
            let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            let limit = wanted.min(most);
            word(format!("--ulimit={name}={limit}:{limit}"));
        }
        let memory = "rw,exec,nosuid,nodev";
        let inodes = match self.kind {
            EngineKind::Docker => format!(",nr_inodes={}", limits.workspace_inodes),
            // It does not know this option.
            EngineKind::Podman => String::new(),
        };
        word(format!(
            "--tmpfs=/workspace:{memory},mode=0777,size={}{inodes}",
            limits.workspace
        ));
        word(format!(
            "--tmpfs=/tmp:{memory},mode=1777,size={}",
            limits.tmp
        ));
        if self.image.is_none() {
            for path in image::host_folders() {
                words.push(self.volume(&path, &path, Access::ReadOnly)?);
            }
        }
        words.push(self.volume(&self.own, Path::new(PROGRAM), Access::ReadOnly)?);
        words.push(self.volume(folder, Path::new(FOLDER), Access::ReadOnly)?);
        for tree in &view.trees {
            words.push(self.volume(&tree.host, &tree.cell, Access::ReadOnly)?);
        }
        for mount in &view.mounts {
            words.push(self.volume(&mount.host, &mount.cell, mount.access)?);
        }
        words.extend([image, PROGRAM].map(OsString::from));
        Ok(words)
    }

    fn volume(
        &self,
        host: &Path,
        inside: &Path,
        access: Access,
    ) -> Result<OsString, ContainerError> {
        // Engines take what is mounted as one word with parts.
        let is_odd = |path: &Path| {
            let bytes = path.as_os_str().as_encoded_bytes();
            bytes.iter().any(|it| b":,\"\n".contains(it))
        };
        if is_odd(host) || is_odd(inside) {
            return Err(ContainerError::Cannot {
                engine: self.kind.name(),
                what: "be shown a folder with `:`, `,` or a quotation mark in its name",
            });
        }
        let mut word = OsString::from("--mount=type=bind,source=");
        word.push(host);
        word.push(",destination=");
        word.push(inside);
        if access == Access::ReadOnly {
            // SECURITY: the engine makes the first mount read-only, and not those below it; so these are left out.
            word.push(",readonly,bind-nonrecursive=true");
        }
        Ok(word)
    }
}
