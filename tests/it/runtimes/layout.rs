//! Homes with interpreters in them, as the version managers leave them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Hotcell, Running, open_to_all};

/// The name of a file that is in the home and beside each prefix, for a program not to find.
pub const CANARY: &str = "canary.txt";

/// Tells what it sees, given the home and where to search.
pub const PYTHON_PROBE: &str = r#"
import errno, json, os, sys
home, root = sys.argv[1:]
def attempt(path):
    try:
        open(path, "w").close()
        os.unlink(path)
        return "written"
    except OSError as error:
        return errno.errorcode[error.errno]
def search(root):
    for folder, inner, files in os.walk(root):
        if folder == "/":
            inner[:] = [name for name in inner if name not in ("proc", "sys", "usr")]
        if "canary.txt" in files:
            yield folder
import ctypes, decimal
print(json.dumps({
    "prefix": sys.prefix,
    "works": decimal.Decimal(1) / 3 > 0 and ctypes.sizeof(ctypes.c_int) == 4,
    "home": os.path.exists(home),
    "found": list(search(root)),
    "mounts": home in open("/proc/self/mountinfo").read(),
    "opt": os.listdir("/opt"),
    "write": attempt(sys.prefix + "/new"),
}))
"#;

pub const NODE_PROBE: &str = r#"
const fs = require("fs"), path = require("path");
const [home, root] = process.argv.slice(-2);
const prefix = path.dirname(path.dirname(process.execPath));
function attempt(file) {
    try { fs.writeFileSync(file, ""); fs.unlinkSync(file); return "written"; }
    catch (error) { return error.code; }
}
function search(folder) {
    let entries = [];
    try { entries = fs.readdirSync(folder, { withFileTypes: true }); } catch {}
    return entries.flatMap(entry => {
        if (entry.name === "canary.txt") return [folder];
        if (!entry.isDirectory() || ["/proc", "/sys", "/usr"].includes(folder + entry.name)) return [];
        return search(path.join(folder, entry.name));
    });
}
console.log(JSON.stringify({
    prefix, works: require("zlib").gzipSync("x").length > 0, home: fs.existsSync(home), found: search(root),
    mounts: fs.readFileSync("/proc/self/mountinfo", "utf8").includes(home),
    opt: fs.readdirSync("/opt"), write: attempt(path.join(prefix, "new")),
}));
"#;

/// One way of keeping an interpreter in a home.
pub struct Layout {
    pub name: &'static str,
    /// Where the interpreter has its own folder.
    pub prefix: &'static str,
    way: Way,
}

/// How `PATH` leads to it.
enum Way {
    /// By the prefix's own `bin`.
    Bin,
    /// By a link in this folder.
    Link(&'static str),
    /// By a script in this folder.
    Shim(&'static str),
    /// By a link in this folder to one program that looks at its own name.
    Multicall(&'static str, &'static str),
    /// By this folder, which is a link to `bin`.
    LinkedBin(&'static str),
    /// By a virtual environment with a link, or with a copy.
    Environment(&'static str),
    CopiedEnvironment(&'static str),
}

#[rustfmt::skip]
pub const PYTHONS: [Layout; 8] = [
    Layout { name: "uv", prefix: "home/.local/share/uv/python/cpython-3-linux", way: Way::Link("home/.local/bin") },
    Layout { name: "conda", prefix: "home/miniconda3", way: Way::Bin },
    Layout { name: "conda environment", prefix: "home/anaconda3/envs/work", way: Way::Bin },
    Layout { name: "pyenv", prefix: "home/.pyenv/versions/3", way: Way::Shim("home/.pyenv/shims") },
    Layout {
        name: "mise", prefix: "home/.local/share/mise/installs/python/3",
        way: Way::Multicall("home/.local/share/mise/shims", "home/.local/bin/mise"),
    },
    Layout { name: "a link to a link", prefix: "home/.asdf/installs/python/3", way: Way::LinkedBin("home/current") },
    Layout { name: "venv", prefix: "home/python-of-venv", way: Way::Environment("home/project/.venv") },
    Layout { name: "venv by copies", prefix: "home/python-of-copy", way: Way::CopiedEnvironment("home/copied/.venv") },
];

#[rustfmt::skip]
pub const NODES: [Layout; 4] = [
    Layout { name: "nvm", prefix: "home/.nvm/versions/node/v20", way: Way::Bin },
    Layout {
        name: "fnm", prefix: "home/.local/share/fnm/node-versions/v20/installation",
        way: Way::LinkedBin("home/.local/state/fnm_multishells/1_2"),
    },
    Layout {
        name: "volta", prefix: "home/.volta/tools/image/node/20",
        way: Way::Multicall("home/.volta/bin", "home/.volta/bin/volta-shim"),
    },
    Layout { name: "nodenv", prefix: "home/.nodenv/versions/20", way: Way::Shim("home/.nodenv/shims") },
];

/// A copy of this host's interpreter, in a folder of its own.
pub struct Interpreter {
    /// The name it is called by, and its file's.
    command: &'static str,
    file: String,
    /// The folder above `bin`, wherever that is now.
    prefix: PathBuf,
}

impl Interpreter {
    pub fn python(hotcell: &Hotcell) -> Self {
        let ask = "import os, sys, sysconfig\n\
                   print(os.path.realpath(sys.executable), sysconfig.get_path('stdlib'), sep='\\n')";
        let mut python = Command::new("python3");
        hotcell.dress(python.args(["-I", "-S", "-c", ask]));
        let said = Running::start(&mut python).finish().out();
        let mut lines = said.lines();
        let (program, library) = (lines.next().expect("a path"), lines.next().expect("a path"));
        let copied = Self::copy(hotcell, "python3", program);
        let lib = hotcell.make_folder("interpreter/lib");
        let mut copy = Command::new("cp");
        hotcell.dress(copy.arg("-r").arg(library).arg(lib));
        assert_eq!(Running::start(&mut copy).finish().code, Some(0));
        copied
    }

    pub fn node(hotcell: &Hotcell) -> Self {
        let mut node = Command::new("node");
        hotcell.dress(node.args(["-p", "process.execPath"]));
        let program = Running::start(&mut node).finish().out();
        Self::copy(hotcell, "node", program.trim())
    }

    /// The interpreter itself.
    pub fn real(&self) -> PathBuf {
        self.prefix.join("bin").join(&self.file)
    }

    fn copy(hotcell: &Hotcell, command: &'static str, program: &str) -> Self {
        let bin = hotcell.make_folder("interpreter/bin");
        let file = Path::new(program).file_name().expect("a file");
        fs::copy(program, bin.join(file)).expect("a copy");
        if file != command {
            link(Path::new(file), &bin.join(command));
        }
        Self {
            command,
            file: file.to_string_lossy().into_owned(),
            prefix: hotcell.place("interpreter"),
        }
    }

    /// Moves it to its place in a layout and lays the way to it; the `PATH` to use.
    pub fn arrange(&mut self, hotcell: &Hotcell, layout: &Layout) -> String {
        let prefix = hotcell.place(layout.prefix);
        let above = Path::new(layout.prefix)
            .parent()
            .expect("it is below the home");
        hotcell.make_folder(above);
        fs::rename(&self.prefix, &prefix).expect("a prefix can be moved");
        self.prefix = prefix;
        for folder in [Path::new("home"), above] {
            let canary = folder.join(CANARY);
            hotcell.write(canary.to_str().expect("plain"), "of the home");
        }

        let real = self.real();
        let shim = |path: &str| {
            let text = format!("#!/bin/sh\nexec {} \"$@\"\n", real.display());
            open_to_all(&hotcell.write(path, text));
        };
        let folder = match layout.way {
            Way::Bin => self.prefix.join("bin"),
            Way::Link(folder) => {
                link(&real, &hotcell.make_folder(folder).join(self.command));
                hotcell.place(folder)
            }
            Way::Shim(folder) => {
                shim(&format!("{folder}/{}", self.command));
                hotcell.place(folder)
            }
            Way::Multicall(folder, manager) => {
                shim(manager);
                let folder = hotcell.make_folder(folder);
                link(&hotcell.place(manager), &folder.join(self.command));
                folder
            }
            Way::LinkedBin(folder) => {
                hotcell.make_folder(Path::new(folder).parent().expect("a folder above"));
                link(&self.prefix.join("bin"), &hotcell.place(folder));
                hotcell.place(folder)
            }
            Way::Environment(folder) => {
                let bin = self.environment(hotcell, folder);
                link(&real, &bin.join(self.command));
                bin
            }
            Way::CopiedEnvironment(folder) => {
                let bin = self.environment(hotcell, folder);
                fs::copy(&real, bin.join(self.command)).expect("a copy");
                bin
            }
        };
        folder.display().to_string()
    }

    /// A virtual environment without its interpreter; its `bin`.
    fn environment(&self, hotcell: &Hotcell, folder: &str) -> PathBuf {
        let home = self.prefix.join("bin");
        let settings = format!("home = {}\nversion = 3\n", home.display());
        hotcell.write(&format!("{folder}/pyvenv.cfg"), settings);
        hotcell.make_folder(Path::new(folder).join("bin"))
    }
}

fn link(target: &Path, at: &Path) {
    symlink(target, at).expect("a link");
}
