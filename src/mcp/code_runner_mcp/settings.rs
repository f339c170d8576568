//! The variables of code-runner-mcp, as grants of ours.

use crate::hint::{Shown, Surface};
use crate::request::{Access, Mount, Network, RequestError, check_mount, check_variable};

/// One of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Python,
    JavaScript,
}

impl Kind {
    pub fn tool(self) -> &'static str {
        match self {
            Self::Python => "python-code-runner",
            Self::JavaScript => "javascript-code-runner",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Python => "Run Python",
            Self::JavaScript => "Run JavaScript or TypeScript",
        }
    }

    /// What its tool shows. Hosts are granted for JavaScript, when the server starts.
    pub fn surface(self) -> Surface {
        Surface::Compat(Shown {
            packages: self == Self::Python,
            timeout: false,
            deno: self == Self::JavaScript,
        })
    }

    /// Its name in that server's messages.
    pub fn short(self) -> &'static str {
        match self {
            Self::Python => "py",
            Self::JavaScript => "js",
        }
    }

    /// Ids of ours, the best first: TypeScript's runtimes take JavaScript too.
    pub fn languages(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["python"],
            Self::JavaScript => &["typescript", "javascript"],
        }
    }

    pub fn seconds(self) -> u64 {
        match self {
            Self::Python => 180,
            Self::JavaScript => 60,
        }
    }
}

/// What the server's owner has set.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub tools: Vec<Kind>,
    /// For JavaScript, as in that server.
    pub network: Network,
    pub mounts: Vec<Mount>,
    pub env: Vec<(String, String)>,
    pub python_mounts: Vec<Mount>,
    /// What its owner should know.
    pub notes: Vec<String>,
    permissions: String,
}

impl Settings {
    /// Reads the variables.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, RequestError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let mut settings = Self::default();
        settings.allow_tools(&variable("ALLOWED_TOOLS").unwrap_or_default());
        let permissions = variable("DENO_PERMISSION_ARGS").unwrap_or_default();
        for word in permissions.split_whitespace() {
            settings.permit(word, &variable)?;
        }
        settings.permissions = permissions;
        if let Some(root) = variable("NODEFS_ROOT") {
            let place = variable("NODEFS_MOUNT_POINT").unwrap_or_else(|| root.clone());
            let mount = check_mount(root.as_ref(), &place, Access::Write)?;
            settings.python_mounts.push(mount);
        }
        if variable("PYODIDE_PACKAGE_BASE_URL").is_some() {
            settings.notes.push(
                "PYODIDE_PACKAGE_BASE_URL has no effect: packages are CPython's own. Set HOTCELL_PYPI_INDEX to use a mirror"
                    .to_owned(),
            );
        }
        Ok(settings)
    }

    fn allow_tools(&mut self, text: &str) {
        let words = text.split(',').map(|word| word.trim().to_ascii_lowercase());
        for word in words.filter(|word| !word.is_empty()) {
            match word.as_str() {
                "all" => self.tools.extend([Kind::Python, Kind::JavaScript]),
                "python" | "py" => self.tools.push(Kind::Python),
                "javascript" | "js" => self.tools.push(Kind::JavaScript),
                other => self.notes.push(format!(
                    "ALLOWED_TOOLS: there is no tool `{}`; use all, python, javascript or js",
                    other.escape_debug()
                )),
            }
        }
        if text.trim().is_empty() {
            self.tools = vec![Kind::Python, Kind::JavaScript];
        }
    }

    /// One flag of deno's. The walls of the sandbox stay: what a flag lets a program do, it may do
    /// inside, and hosts, folders and variables are granted as our own policy grants them.
    fn permit(
        &mut self,
        word: &str,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<(), RequestError> {
        let (flag, values) = word.split_once('=').unwrap_or((word, ""));
        let values = || values.split(',').filter(|it| !it.is_empty());
        let has_values = values().next().is_some();
        match flag {
            "--allow-net" | "--allow-import" | "-N" if has_values => {
                let own = match &self.network {
                    Network::All => return Ok(()),
                    own => own.to_string(),
                };
                let own = own
                    .split([',', ' '])
                    .filter(|it| !it.is_empty() && *it != "none");
                let words: Vec<&str> = own.chain(values()).collect();
                self.network = Network::from_words(words).map_err(RequestError::from)?;
            }
            "--allow-net" | "--allow-import" | "-N" => self.network = Network::All,
            "--allow-all" | "-A" => {
                self.network = Network::All;
                self.notes.push(format!(
                    "{flag} grants every public host; the sandbox stays, so folders and variables of this machine are granted by name only, \
                     as in --allow-read=/srv/data --allow-write=/srv/out --allow-env=HOME,LANG"
                ));
            }
            "--allow-read" | "--allow-write" | "-R" | "-W" => {
                let access = match flag {
                    "--allow-read" | "-R" => Access::ReadOnly,
                    _ => Access::Write,
                };
                if !has_values {
                    self.notes.push(format!(
                        "{flag} without a folder grants the workspace only; name folders as in {flag}=/srv/data"
                    ));
                }
                for path in values() {
                    let mount = check_mount(path.as_ref(), path, access)?;
                    match self.mounts.iter_mut().find(|it| it.cell == mount.cell) {
                        Some(same) if access == Access::Write => same.access = access,
                        Some(_) => {}
                        None => self.mounts.push(mount),
                    }
                }
            }
            "--allow-env" | "-E" => {
                // SECURITY: never the whole environment; it has the owner's tokens.
                if !has_values {
                    self.notes.push(
                        "--allow-env without names grants none, since they may be secret; name them as in --allow-env=HOME,LANG"
                            .to_owned(),
                    );
                }
                for name in values() {
                    let value = variable(name).unwrap_or_default();
                    check_variable(name, &value)?;
                    self.env.push((name.to_owned(), value));
                }
            }
            // Inside its sandbox a program may do these anyway.
            "--allow-run" | "--allow-ffi" | "--allow-sys" | "-S" | "--allow-hrtime" => {}
            "--no-prompt" | "--quiet" | "-q" | "--cached-only" => {}
            other => self.notes.push(format!(
                "DENO_PERMISSION_ARGS: `{}` is not understood and has no effect",
                other.escape_debug()
            )),
        }
        Ok(())
    }

    /// What a tool says of itself, by what is granted now.
    pub fn description(&self, kind: Kind) -> String {
        let mut text = match kind {
            Kind::Python => "Run Python in a fresh sandbox: real CPython, nothing kept between calls. \
                Packages that the code imports are installed; `packages` maps an import to its package where \
                they differ. Print what you want to see.".to_owned(),
            Kind::JavaScript => "Run JavaScript or TypeScript in a fresh sandbox, nothing kept between calls: \
                ESM, `npm:` packages, `node:` modules. Use console.log() to see something.".to_owned(),
        };
        let mounts = match kind {
            Kind::Python => &self.python_mounts,
            Kind::JavaScript => &self.mounts,
        };
        let folders: Vec<String> = mounts
            .iter()
            .map(|it| it.cell.display().to_string())
            .collect();
        text += "\n\nFiles: the working directory /workspace is private to each call";
        if !folders.is_empty() {
            text += &format!("; folders of the host: {}", folders.join(", "));
        }
        text += ".\nNetwork: ";
        text += &match (kind, &self.network) {
            (Kind::JavaScript, network) => network.to_string(),
            (Kind::Python, _) => "none".to_owned(),
        };
        text += ".";
        if kind == Kind::JavaScript && !self.permissions.is_empty() {
            text += &format!("\nPermissions: {}.", self.permissions);
        }
        text += "\nErrors: a permission error names the allowed folder; a missing module, how to install it; \
            a syntax error, what to escape.";
        text
    }

    /// The folders that programs may write to.
    pub fn writable(&self, kind: Kind) -> String {
        let mounts = match kind {
            Kind::Python => &self.python_mounts,
            Kind::JavaScript => &self.mounts,
        };
        let own = mounts.iter().filter(|it| it.access == Access::Write);
        let own = own.map(|it| it.cell.display().to_string());
        let all: Vec<String> = ["/workspace".to_owned(), "/tmp".to_owned()]
            .into_iter()
            .chain(own)
            .collect();
        all.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Settings {
        let variable = |name: &str| {
            let found = pairs.iter().find(|it| it.0 == name);
            found.map(|it| it.1.to_owned())
        };
        Settings::read(variable).unwrap()
    }

    #[test]
    fn the_tools_are_those_that_are_allowed() {
        let tools = |text| read(&[("ALLOWED_TOOLS", text)]).tools;
        assert_eq!(read(&[]).tools, [Kind::Python, Kind::JavaScript]);
        assert_eq!(tools("ALL"), [Kind::Python, Kind::JavaScript]);
        assert_eq!(tools("python"), [Kind::Python]);
        assert_eq!(tools("JS"), [Kind::JavaScript]);
        assert_eq!(
            tools("javascript, python"),
            [Kind::JavaScript, Kind::Python]
        );
        assert_eq!(read(&[("ALLOWED_TOOLS", "ruby")]).notes.len(), 1);
    }

    #[test]
    fn deno_flags_become_grants_and_what_is_not_understood_is_said() {
        let settings = read(&[
            (
                "DENO_PERMISSION_ARGS",
                "--allow-net=example.com,api.example.org:8443 --allow-env=FOO --frob",
            ),
            ("FOO", "1"),
            ("BAR", "2"),
        ]);
        assert_eq!(settings.env, [("FOO".to_owned(), "1".to_owned())]);
        assert!(
            settings
                .network
                .to_string()
                .contains("api.example.org:8443"),
            "{}",
            settings.network
        );
        assert!(settings.notes[0].contains("--frob"), "{:?}", settings.notes);
        for flag in ["--allow-all", "-A"] {
            let all = read(&[("DENO_PERMISSION_ARGS", flag)]);
            assert_eq!(all.network, Network::All);
            // What it does not do is said.
            assert!(all.notes[0].starts_with(flag), "{:?}", all.notes);
        }
        for flag in ["--allow-read", "--allow-write", "--allow-env"] {
            let said = read(&[("DENO_PERMISSION_ARGS", flag)]).notes;
            assert!(said[0].starts_with(flag), "{said:?}");
        }
        assert!(
            read(&[("DENO_PERMISSION_ARGS", "--allow-env"), ("FOO", "1")])
                .env
                .is_empty()
        );
        assert_eq!(read(&[]).network, Network::None);
    }

    #[test]
    fn a_description_says_what_is_granted_now() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().to_str().unwrap();
        let with = read(&[("NODEFS_ROOT", path), ("NODEFS_MOUNT_POINT", "/data")]);
        assert!(with.description(Kind::Python).contains("/data"));
        assert!(!read(&[]).description(Kind::Python).contains("/data"));
        assert!(
            !with.description(Kind::JavaScript).contains("/data"),
            "it is for Python"
        );
    }
}
