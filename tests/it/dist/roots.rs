//! The tarball, the Debian package and the image, each in a root that has nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{ROOT, VERSION, file, has_tools, succeed, works};
use crate::support::{has, has_heavy, skip};

/// A root with nothing but a static busybox; none if this machine has none.
fn empty_root() -> Option<tempfile::TempDir> {
    if !has("busybox") || !has("unshare") {
        return None;
    }
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("bin")).unwrap();
    fs::copy("/bin/busybox", root.path().join("bin/busybox")).unwrap();
    let tools = "sh mktemp uname dirname tar gzip cut sha256sum id mkdir cp chmod mv rm cat";
    for tool in tools.split(' ') {
        symlink("busybox", root.path().join("bin").join(tool)).unwrap();
    }
    let starts = inside(root.path(), &["sh", "-c", "true"]).output().unwrap();
    if !starts.status.success() {
        let said = String::from_utf8_lossy(&starts.stderr).into_owned();
        skip(&format!("no other root can be entered: {said}"));
        return None;
    }
    Some(root)
}

fn inside(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .arg(format!("{ROOT}/tests/dist/inside"))
        .arg(root)
        .args(words);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", "/tmp");
    command
}

#[test]
fn the_tarball_is_installed_by_its_script_and_a_damaged_one_is_not() {
    let Some(root) = empty_root() else { return };
    let name = format!(
        "hotcell-{VERSION}-{}-unknown-linux-gnu.tar.gz",
        std::env::consts::ARCH
    );
    for name in ["install.sh", &name, &format!("{name}.sha256")] {
        fs::copy(file(name), root.path().join(name)).unwrap();
    }
    let said = succeed(&mut inside(root.path(), &["sh", "/install.sh"]));
    assert!(said.contains("as /usr/local/bin/hotcell"), "{said}");
    works(|words| inside(root.path(), &[&["hotcell"], words].concat()));
    let share = root.path().join("usr/local/share");
    has_tools(&share);
    assert!(share.join("doc/hotcell/LICENSE-MIT").exists());
    // Control: one byte is another.
    let mut bytes = fs::read(root.path().join(&name)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(root.path().join(&name), bytes).unwrap();
    fs::remove_file(root.path().join("usr/local/bin/hotcell")).unwrap();
    let output = inside(root.path(), &["sh", "/install.sh"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("is damaged"));
    assert!(!root.path().join("usr/local/bin/hotcell").exists());
}

#[test]
fn the_debian_package_is_installed_by_dpkg_and_removed_again() {
    let Some(root) = empty_root() else { return };
    if !has("dpkg") {
        return;
    }
    let machine = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let package = file(&format!("hotcell_{VERSION}_{machine}.deb"));
    let state = root.path().join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(state.join(folder)).unwrap();
    }
    for name in ["status", "available"] {
        fs::write(state.join(name), "").unwrap();
    }
    let dpkg = |words: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", root.path().display()));
        // The database is ours, whoever we are; dpkg wants ldconfig to be there.
        command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        command.args(["--force-not-root", "--force-script-chrootless"]);
        command.args(words);
        succeed(&mut command)
    };
    dpkg(&["-i", &package]);
    works(|words| inside(root.path(), &[&["hotcell"], words].concat()));
    let listed = dpkg(&["-L", "hotcell"]);
    for there in [
        "man/man1/hotcell.1.gz",
        "bash-completion/completions/hotcell",
        "zsh/vendor-completions/_hotcell",
        "fish/vendor_completions.d/hotcell.fish",
    ] {
        assert!(
            listed.contains(&format!("/usr/share/{there}\n")),
            "{listed}"
        );
    }
    assert_eq!(dpkg(&["-V", "hotcell"]), "", "its sums are right");
    dpkg(&["-r", "hotcell"]);
    assert!(!root.path().join("usr/bin/hotcell").exists());
}

#[test]
fn the_image_is_whole_and_works_as_an_ordinary_user() {
    let Some(root) = empty_root() else { return };
    let machine = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let image = file(&format!("hotcell-{VERSION}-{machine}.oci.tar"));
    let folder = tempfile::tempdir().unwrap();
    let unpack = |archive: &Path, to: &Path| {
        succeed(
            Command::new("tar")
                .arg("-xf")
                .arg(archive)
                .arg("-C")
                .arg(to),
        );
    };
    unpack(Path::new(&image), folder.path());
    // Every blob is the one that its name says.
    let blob = |digest: &Value| {
        let total = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
        let path = folder.path().join("blobs/sha256").join(total);
        let found = succeed(Command::new("sha256sum").arg(&path));
        assert!(found.starts_with(total), "{found}");
        path
    };
    let json = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let index = json(&folder.path().join("index.json"));
    let manifest = json(&blob(&index["manifests"][0]["digest"]));
    let config = json(&blob(&manifest["config"]["digest"]));
    assert_eq!(config["config"]["User"], "1000:1000");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/hotcell");
    for layer in manifest["layers"].as_array().unwrap() {
        unpack(&blob(&layer["digest"]), root.path());
    }
    works(|words| inside(root.path(), &[&["/usr/bin/hotcell"], words].concat()));
    has_tools(&root.path().join("usr/share"));

    if has_heavy("podman") {
        in_podman(&image);
    }
}

/// The same by a real engine, where this host lets one start containers at all.
fn in_podman(image: &str) {
    let Some(loaded) = Loaded::of(image) else {
        return;
    };
    works(|words| loaded.podman(&["--network=none"], words));
}

/// An image that Podman has; alone, for all have one name.
pub struct Loaded {
    _alone: MutexGuard<'static, ()>,
}

impl Loaded {
    /// None where Podman starts nothing.
    pub fn of(image: &str) -> Option<Self> {
        static ONE: Mutex<()> = Mutex::new(());
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        succeed(Command::new("podman").args(["load", "--quiet", "--input", image]));
        let loaded = Self { _alone: alone };
        let first = loaded.podman(&["--network=none"], &["--version"]).output();
        let said = String::from_utf8_lossy(&first.unwrap().stderr).into_owned();
        if said.contains("OCI") {
            println!("SKIP podman starts nothing here: {said}");
            return None;
        }
        Some(loaded)
    }

    /// A container of it as docs/release.md starts one.
    pub fn podman(&self, options: &[&str], words: &[&str]) -> Command {
        let mut command = Command::new("podman");
        command.args(["run", "--rm", "--security-opt=seccomp=unconfined"]);
        command.args([
            "--security-opt=unmask=ALL",
            "--ulimit=nofile=1024:1024",
            "--ulimit=nproc=1000:1000",
        ]);
        // crun wants cgroups of one kind.
        if Path::new("/usr/sbin/runc").exists() {
            command.arg("--runtime=runc");
        }
        command.args(options);
        command
            .arg(format!("localhost/hotcell:{VERSION}"))
            .args(words);
        command
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let name = format!("localhost/hotcell:{VERSION}");
        let _ = Command::new("podman")
            .args(["rmi", "--force", &name])
            .output();
    }
}
