//! Running a program as anyone would without hotcell, at the same paths and with the same
//! arguments, environment and limits, but in no cell.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

use super::answer::Answer;
use super::ours::signal_name;
use super::program::Program;
use crate::support::{Hotcell, Running, open_to_all};

/// Enters the root that [`lay_out`] has made and becomes the program.
const STAGE: &str = include_str!("stage.sh");

const NOBODY: u32 = 65534;

pub struct Plain {
    folder: PathBuf,
    /// How hotcell would start it, by extension.
    plans: HashMap<String, Value>,
    modules: Mutex<HashMap<String, bool>>,
}

impl Plain {
    pub fn new(hotcell: &Hotcell) -> Self {
        let folder = hotcell.make_folder("plain");
        let mut plans = HashMap::new();
        for extension in super::EXTENSIONS {
            let file = hotcell.write(&format!("plain/main.{extension}"), "1");
            let answer = hotcell.run(&["--plan", file.to_str().expect("UTF-8")]);
            if answer.code == Some(0) {
                let plan = answer.json();
                assert_eq!(
                    plan["trees"],
                    serde_json::json!([]),
                    "a runtime outside /usr"
                );
                plans.insert(extension.to_owned(), plan);
            }
        }
        Self {
            folder,
            plans,
            modules: Mutex::default(),
        }
    }

    pub fn run(&self, program: &Program) -> Answer {
        let stage = tempfile::tempdir_in(&self.folder).expect("a folder");
        lay_out(stage.path(), program);
        let mut command = self.command(stage.path(), program);
        let answer = match &program.stdin {
            None => Running::start(command.stdin(Stdio::null())).finish(),
            Some(text) => {
                Running::start(command.stdin(Stdio::piped())).finish_with(text.as_bytes())
            }
        };
        Answer {
            code: answer.code.map(i64::from),
            signal: answer.signal.map(signal_name),
            stdout: answer.out(),
            stderr: answer.err(),
        }
    }

    pub fn has_needs(&self, program: &Program) -> bool {
        let Some(module) = &program.needs else {
            return true;
        };
        let mut modules = self.modules.lock().expect("nobody panics");
        *modules.entry(module.clone()).or_insert_with(|| {
            let asks = Program::of("needs.py", &format!("import {module}"));
            self.run(&asks).code == Some(0)
        })
    }

    fn command(&self, stage: &Path, program: &Program) -> Command {
        let plan = self
            .plans
            .get(program.extension())
            .expect("its runtime is here");
        let limit = |name: &str| plan["limits"][name].as_u64().expect("a number");
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--propagation",
            "private",
            "bash",
            "-c",
            STAGE,
            "stage",
        ]);
        command.args([stage.join("root"), stage.join("fstab")]);
        command.arg(format!("--fsize={}", limit("file_size")));
        command.arg(format!("--nofile={}", limit("open_files")));
        // Whoever started the tests may have ignored some, as `nohup` and a shell without jobs do; a cell does not inherit that.
        command.args(["env", "-i", "--default-signal", "-C", "/workspace"]);
        for (name, value) in plan["env"].as_object().expect("an environment") {
            command.arg(format!("{name}={}", value.as_str().expect("text")));
        }
        let argv = plan["argv"].as_array().expect("a list").iter();
        let argv = argv.map(|word| word.as_str().expect("text"));
        // Without this a plain Python loses what it printed when it is killed, and hotcell's does not. One that looks sees that hotcell does without.
        let looks = |it: &&str| program.code.contains(it);
        let is_seen = ["orig_argv", "cmdline"].iter().any(looks);
        command.args(argv.filter(|word| !is_seen || *word != "-u"));
        command.args(&program.args);
        command
    }
}

/// Makes a root that will show the host, but for a `/workspace` and a `/tmp` of its own.
fn lay_out(stage: &Path, program: &Program) {
    let root = stage.join("root");
    let mut fstab = String::new();
    let home = root.join("workspace/.home");
    for folder in [&home, &root.join("tmp")] {
        fs::create_dir_all(folder).expect("a folder");
    }
    for name in ["usr", "etc", "dev", "proc", "bin", "sbin", "lib", "lib64"] {
        let (host, ours) = (Path::new("/").join(name), root.join(name));
        if let Ok(target) = fs::read_link(&host) {
            symlink(target, ours).expect("a link");
        } else if host.is_dir() {
            fs::create_dir(&ours).expect("a folder");
            fstab += &format!("/{name} {} none rbind 0 0\n", ours.display());
        }
    }
    fs::write(stage.join("fstab"), fstab).expect("a file");
    program.place(&root.join("workspace"));
    open_to_all(stage);
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).expect("a mode");
    give(&root.join("workspace"));
}

/// Gives a folder and all in it to the user that programs run as.
fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("root gives it away");
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            give(&entry.expect("an entry").path());
        }
    }
}
