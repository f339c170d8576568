use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use tempfile::TempDir;

use super::prefix::too_wide;
use super::*;

/// A host of our own: folders that serve as `PATH`, a home and a cache.
struct Host {
    root: TempDir,
    around: Surroundings,
}

impl Host {
    fn new(folders: &[&str]) -> Self {
        let root = TempDir::new().unwrap();
        let at = |name: &str| fs::canonicalize(root.path()).unwrap().join(name);
        for folder in folders.iter().chain(&["home"]) {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let path = std::env::join_paths(folders.iter().map(|folder| at(folder))).unwrap();
        let around = Surroundings {
            path,
            home: Some(at("home")),
            cache: Some(at("cache")),
            ..Default::default()
        };
        Self { root, around }
    }

    fn at(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join(name)
    }

    /// A script, written by a shell: a file this process had open for writing
    /// cannot be started while another test's child still holds it.
    fn script(&self, name: &str, body: &str) {
        let write = "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod 755 \"$1\"";
        let wrote = Command::new("/bin/sh")
            .args(["-c", write, "sh"])
            .arg(self.at(name))
            .arg(body)
            .status()
            .unwrap();
        assert!(wrote.success());
    }

    /// A file that looks like a real program.
    fn program(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, b"\x7fELF and so on").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn find(&self) -> Result<Runtime, MissingRuntime> {
        Runtime::find(&definition(), &self.around)
    }

    fn found(&self) -> (PathBuf, String) {
        let runtime = self.find().unwrap_or_else(|error| panic!("{error}"));
        (runtime.path, runtime.program)
    }
}

fn definition() -> Definition {
    let text = r#"
name = "Snake"
runtime.commands = ["snake3", "snake"]
runtime.where = ["--where"]
runtime.install = { apt = "snake3" }
source.file = "main.sn"
run.argv = ["{runtime}", "{file}"]
"#;
    Definition::parse("snake-lang", text, Path::new("snake-lang.toml")).unwrap()
}

#[test]
fn a_program_in_usr_keeps_its_name_and_needs_no_tree() {
    let text = r#"
name = "Shell"
runtime.commands = ["sh"]
source.file = "main.sh"
run.argv = ["{runtime}", "{file}"]
"#;
    let shell = Definition::parse("shell", text, Path::new("shell.toml")).unwrap();
    let around = Surroundings {
        path: OsString::from("/bin"),
        ..Default::default()
    };

    let runtime = Runtime::find(&shell, &around).unwrap();

    let real = fs::canonicalize("/bin/sh").unwrap();
    // By the name it was asked for: a shell called `sh` is another shell.
    assert_eq!(
        (runtime.program, runtime.prefix),
        ("/usr/bin/sh".to_owned(), None)
    );
    assert_eq!(runtime.path, real);
}

#[test]
fn a_program_elsewhere_is_shown_with_its_prefix_at_opt() {
    let host = Host::new(&["links"]);
    let real = host.program("snake-3.2/bin/snake3.2");
    symlink("../snake-3.2/bin/snake3.2", host.at("links/snake3")).unwrap();

    let runtime = host.find().unwrap();

    let tree = Tree {
        host: host.at("snake-3.2"),
        cell: PathBuf::from("/opt/snake-lang"),
    };
    let expected = Runtime {
        command: "snake3".to_owned(),
        path: real,
        program: "/opt/snake-lang/bin/snake3.2".to_owned(),
        prefix: Some(tree),
        libraries: Vec::new(),
        way: definition().commands()[0].clone(),
        tools: Vec::new(),
        shown: Vec::new(),
        env: Default::default(),
    };
    assert_eq!(runtime, expected);
}

#[test]
fn a_program_outside_a_bin_folder_is_shown_with_its_own_folder() {
    let host = Host::new(&["snake-dist"]);
    let real = host.program("snake-dist/snake");
    assert_eq!(host.found(), (real, "/opt/snake-lang/snake".to_owned()));
}

#[test]
fn commands_are_preferred_in_their_order_and_folders_in_theirs() {
    let host = Host::new(&["a/bin", "b/bin", "c/bin"]);
    let plain = host.program("a/bin/snake");
    assert_eq!(host.found().0, plain);
    let later = host.program("c/bin/snake3");
    assert_eq!(host.found().0, later);
    let earlier = host.program("b/bin/snake3");
    assert_eq!(host.found().0, earlier);
}

#[test]
fn relative_folders_and_files_that_cannot_run_are_not_searched() {
    let mut host = Host::new(&["a/bin", "b/bin"]);
    fs::write(host.at("a/bin/snake3"), "x").unwrap();
    fs::create_dir(host.at("a/bin/snake")).unwrap();
    let real = host.program("b/bin/snake3");
    assert_eq!(host.found().0, real);

    let mut path = OsString::from(":.:bin:");
    path.push("../../../../../../../../../../..");
    path.push(host.at("b/bin"));
    host.around.path = path;
    assert!(host.find().is_err());
}

#[test]
fn a_shim_is_asked_and_its_answer_is_remembered() {
    let host = Host::new(&["env/shims", "other/bin"]);
    let real = host.program("env/versions/3.2/bin/snake3.2");
    let count = host.at("count");
    let body = format!(
        "[ \"$1 $PWD\" = '--where /' ] && echo x >> {} && echo {}",
        count.display(),
        real.display()
    );
    host.script("env/shims/snake3", &body);
    host.program("other/bin/snake3");
    let asked = || fs::read_to_string(&count).unwrap_or_default().len() / 2;

    let expected = (real.clone(), "/opt/snake-lang/bin/snake3.2".to_owned());
    assert_eq!((host.found(), asked()), (expected.clone(), 1));
    assert_eq!((host.found(), asked()), (expected.clone(), 1));

    // The manager's choice changed, so the shim may say something else.
    fs::write(host.at("env/version"), "3.3").unwrap();
    assert_eq!((host.found(), asked()), (expected.clone(), 2));

    // The answer itself was replaced.
    let old = fs::File::options().write(true).open(&real).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!((host.found(), asked()), (expected, 3));
}

#[test]
fn a_cache_that_cannot_be_written_costs_time_and_nothing_else() {
    let mut host = Host::new(&["shims"]);
    let real = host.program("3.2/bin/snake3");
    host.script("shims/snake3", &format!("echo {}", real.display()));
    fs::write(host.at("file"), "").unwrap();
    host.around.cache = Some(host.at("file/cache"));
    assert_eq!(host.found().0, real);
    assert_eq!(host.found().0, real);
}

#[test]
fn a_link_through_shims_or_to_another_name_is_a_shim_too() {
    for link in ["shims/snake3", "plain/snake3"] {
        let host = Host::new(&["shims", "plain"]);
        let real = host.program("3.2/bin/snake3");
        host.script(
            "manager",
            &format!("[ \"${{0##*/}}\" = snake3 ] && echo {}", real.display()),
        );
        symlink("../manager", host.at(link)).unwrap();
        assert_eq!(host.found().0, real, "{link}");
    }
}

#[test]
fn a_program_is_taken_for_a_shim_by_its_links_or_its_name() {
    let host = Host::new(&["shims", "plain"]);
    let real = host.program("3.2/bin/snake3.2");
    let manager = host.program("manager");
    let shim = |link: &str, target: &str| {
        symlink(target, host.at(link)).unwrap();
        is_shim(
            "snake3",
            &host.at(link),
            &fs::canonicalize(host.at(link)).unwrap(),
        )
        .unwrap()
    };

    assert!(!is_shim("snake3", &real, &real).unwrap());
    assert!(!shim("plain/snake3", "../3.2/bin/snake3.2"));
    assert!(shim("shims/snake3", "../3.2/bin/snake3.2"));
    assert!(shim("plain/again", "../shims/snake3"));
    assert!(shim("plain/other", manager.to_str().unwrap()));
}

#[test]
fn a_shim_without_an_answer_is_passed_over_and_the_reason_is_told() {
    let host = Host::new(&["shims", "usable/bin"]);
    host.script(
        "shims/snake3",
        "echo 'snake3: version 9 is not installed' >&2; exit 127",
    );
    let error = host.find().unwrap_err();
    let expected = format!(
        "no runtime for `snake-lang`: no usable snake3 or snake in PATH; \
         {} is a shim: it says \"snake3: version 9 is not installed\"",
        host.at("shims/snake3").display()
    );
    assert_eq!(error.to_string(), expected);

    let real = host.program("usable/bin/snake3");
    assert_eq!(host.found().0, real);
}

#[test]
fn a_shims_answer_is_one_absolute_path_of_a_program() {
    let bodies = [
        "",
        "echo snake3",
        "echo /bin/sh; echo /bin/sh",
        "echo /nowhere",
        "echo $0",
        "exec /usr/bin/yes /bin/sh",
        "echo /",
    ];
    for body in bodies {
        let host = Host::new(&["shims"]);
        host.script("shims/snake3", body);
        let error = host.find().unwrap_err();
        assert!(
            matches!(error.passed_over[0].why, Refusal::Shim(_)),
            "{body}: {error}"
        );
    }
}

#[test]
fn a_copied_interpreter_of_an_environment_leads_to_its_base() {
    let host = Host::new(&["venv/bin"]);
    host.program("venv/bin/snake3");
    let base = host.program("base/bin/snake3");
    let settings = format!("version = 3\nhome = {}\n", host.at("base/bin").display());
    fs::write(host.at("venv/pyvenv.cfg"), settings).unwrap();
    assert_eq!(host.found().0, base);
}

#[test]
fn a_prefix_that_holds_more_than_a_runtime_is_refused() {
    let home = Path::new("/people/ann");
    let wide = [
        "/",
        "/home",
        "/home/bob",
        "/root",
        "/etc",
        "/etc/x/y",
        "/var",
        "/var/lib",
        "/tmp",
        "/opt",
        "/people",
        "/people/ann",
        "/people/ann/.local",
        "/people/ann/.cargo",
        "/root/.config",
        "/proc/self/root/x",
        "/nix",
    ];
    for prefix in wide {
        assert!(too_wide(Path::new(prefix), Some(home)), "{prefix}");
    }
    let narrow = [
        "/opt/conda",
        "/people/ann/.pyenv/versions/3.12",
        "/people/ann/miniconda3",
        "/people/annette",
        "/conda",
        "/people/ann/.local/share/uv/python/cpython-3.12",
        "/root/.nvm/versions/node/v20",
        "/rootless",
        "/tmp/x",
    ];
    for prefix in narrow {
        assert!(!too_wide(Path::new(prefix), Some(home)), "{prefix}");
    }
}

#[test]
fn a_runtime_in_the_homes_own_bin_is_refused_and_the_next_one_is_used() {
    let host = Host::new(&["home/bin", "snake/bin"]);
    host.program("home/bin/snake3");
    let error = host.find().unwrap_err();
    assert!(
        matches!(&error.passed_over[0].why, Refusal::TooWide(prefix) if *prefix == host.at("home")),
        "{error}"
    );
    assert_eq!(
        error.hint().unwrap(),
        "Install it under /usr, or in a folder of its own."
    );

    let real = host.program("snake/bin/snake3");
    assert_eq!(host.found().0, real);
}

#[test]
fn what_is_missing_comes_with_this_hosts_own_install_command() {
    let host = Host::new(&["bin"]);
    let error = host.find().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no runtime for `snake-lang`: no usable snake3 or snake in PATH"
    );
    assert_eq!(error.hint(), None);

    host.program("bin/brew");
    host.program("bin/apt");
    assert_eq!(
        host.find().unwrap_err().hint().unwrap(),
        "Install it: `apt install snake3`."
    );
}
