//! What to do about an error, as data, and each surface's words for it.
//!
//! An error knows what would help: more time, a granted host, the name of a package. By which flag or
//! parameter its reader asks for that, if at all, is the surface's to say. So hints that differ are
//! variants here, with all their wordings side by side; only what reads the same everywhere is text.

mod limit;

use std::borrow::Cow;

pub use limit::Limit;

/// Where a hint is read, which decides how a setting is called there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// The reader types `hotcell run`.
    CommandLine,
    /// The reader types `hotcell packages add`, which has names for arguments and no flag of a run.
    PackagesAdd,
    /// The reader calls a tool, and has its parameters.
    Mcp,
    /// The same for a tool of another server, which shows few of them. What it does not show is not advised.
    Compat(Shown),
}

/// The parameters of `run` that a tool of another server has too, beside the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown {
    pub packages: bool,
    pub timeout: bool,
    /// The server's owner gives the network in a variable of Deno's.
    pub deno: bool,
}

/// What the reader can do about an error: one imperative sentence, once a surface is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// The same on every surface. It names no flag of `run` and no parameter of a tool.
    Text(Cow<'static, str>),
    /// A sentence of a language's definition, in which `{network}` stands for the setting.
    OfDefinition(String),
    GiveCode,
    GiveInput,
    GiveFile,
    GiveMount,
    GiveLock,
    NameLanguage,
    ListLanguages,
    /// The module may also be a file of the caller's.
    NamePackage,
    /// With what may be meant, and why it was not installed.
    NameRefusedPackage {
        candidates: Vec<String>,
        why: String,
    },
    ChangePackages {
        candidates: Vec<String>,
    },
    /// An installer that a program runs itself, and whose packages they are if a list does not mean them here.
    NameInsteadOf {
        installer: String,
        packages: Vec<String>,
        registry: Option<&'static str>,
    },
    RenameFile,
    /// A limit that was met, and the most that may be asked for; `None` if it was that.
    Raise(Limit, Option<String>),
    RaiseOutput,
    /// A folder of the user, by its path in the sandbox, that its mode keeps closed.
    OpenFolder(String),
    /// One that may only be read.
    AllowWriting(String),
    /// Files have used the memory up before the program started.
    ShrinkFiles,
    /// A host, if its name is known, to a program without a network.
    GrantHost(Option<String>),
    /// The host of a connection that was refused.
    GrantRefused(String),
    AllowReduced,
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl Hint {
    pub fn words(&self, surface: Surface) -> String {
        let (shell, tool) = match self {
            Self::Text(text) => return text.clone().into_owned(),
            Self::OfDefinition(text) => return text.replace("{network}", surface.network()),
            Self::NamePackage | Self::NameRefusedPackage { .. } | Self::ChangePackages { .. }
                if surface.packages().is_empty() =>
            {
                return match self {
                    Self::NameRefusedPackage { why, .. } => format!("Do without it: {why}."),
                    Self::ChangePackages { .. } => "Change what the program imports.".to_owned(),
                    _ => "Do without it, or write what it does into the program.".to_owned(),
                };
            }
            Self::NameInsteadOf {
                installer,
                packages,
                registry,
            } => {
                let before = "what a program needs is installed before it starts";
                let what = match packages.as_slice() {
                    [] => "the packages".to_owned(),
                    names => format!("`{}`", names.join("`, `")),
                };
                let place = match (registry, surface) {
                    (None, _) => surface.packages().to_owned(),
                    (Some(name), Surface::CommandLine) => {
                        format!("with `--packages '{{\"{name}\": [...]}}'`")
                    }
                    (Some(name), Surface::Mcp) => {
                        format!("in `packages`, as in {{\"{name}\": [...]}},")
                    }
                    (Some(_), _) => {
                        return format!(
                            "Import {what} in a program of its own language instead of running `{installer}`: {before}."
                        );
                    }
                };
                return match place.as_str() {
                    "" => format!("Import {what} without `{installer}`: {before}."),
                    place => {
                        format!("Name {what} {place} instead of running `{installer}`: {before}.")
                    }
                };
            }
            Self::GiveInput if matches!(surface, Surface::Compat(_)) => {
                return "Write the values into the program: it has no input here.".to_owned();
            }
            Self::NamePackage => {
                return format!(
                    "Name its package {}, or pass the module as a file.",
                    surface.packages()
                );
            }
            Self::NameRefusedPackage { candidates, why } => {
                return match candidates.as_slice() {
                    [] => format!("Name its package {}: {why}.", surface.packages()),
                    names => format!(
                        "Name its package {}, perhaps {}: {why}.",
                        surface.packages(),
                        names.join(" or ")
                    ),
                };
            }
            Self::ChangePackages { candidates } => {
                return match candidates.as_slice() {
                    [] if surface == Surface::PackagesAdd => {
                        format!("Change the names or versions {}.", surface.packages())
                    }
                    [] => format!(
                        "Change what the program imports, or the names or versions {}.",
                        surface.packages()
                    ),
                    names => format!(
                        "Name the right one {}: {}?",
                        surface.packages(),
                        names.join(" or ")
                    ),
                };
            }
            Self::GrantHost(host) => {
                let known = host.as_ref().map(|host| format!("`{host}`"));
                let what = known.as_deref().unwrap_or("the host");
                return match surface {
                    Surface::CommandLine | Surface::PackagesAdd => {
                        format!("Grant {what} with `--network`.")
                    }
                    Surface::Mcp => format!("Grant {what} with `network`."),
                    Surface::Compat(shown) => shown.network(host.as_deref().unwrap_or("HOST")),
                };
            }
            Self::GrantRefused(host) => {
                return match surface {
                    Surface::CommandLine | Surface::PackagesAdd => {
                        format!("Grant it with `--network {host}`.")
                    }
                    Surface::Mcp => format!("Grant it with `network`: [\"{host}\"]."),
                    Surface::Compat(shown) => shown.network(host),
                };
            }
            Self::Raise(limit, most) => return limit.raise(most.as_deref(), surface),
            Self::OpenFolder(path) => {
                return match surface {
                    Surface::CommandLine | Surface::PackagesAdd => format!(
                        "Change owner or mode of what is at `{path}`, or copy it into the sandbox with `--file`."
                    ),
                    Surface::Mcp | Surface::Compat(_) => format!(
                        "Ask the user for another file: owner and mode of what is at `{path}` keep the sandbox out."
                    ),
                };
            }
            Self::AllowWriting(path) => {
                return match surface {
                    Surface::CommandLine | Surface::PackagesAdd => format!(
                        "Write to the working directory, or make `{path}` writable: `--workspace DIR:rw`, `--mount` without `:ro`, or `write = true` in `config.toml`."
                    ),
                    Surface::Mcp | Surface::Compat(_) => format!(
                        "Write to the working directory: only the owner of this server can make `{path}` writable."
                    ),
                };
            }
            Self::GiveCode => (
                "Give a file, `-c CODE`, or code on standard input.",
                "Give the program in `code`.",
            ),
            Self::GiveInput => (
                "Give the program its input on standard input.",
                "Give the program its input as `stdin`.",
            ),
            Self::GiveFile => (
                "Name the program's file, and add a folder with `--file`.",
                "Name a file, not a folder.",
            ),
            Self::GiveMount => (
                "Name a folder of the host and a free path for it: `--mount /srv/data:/data:ro`; use `--file` for a single file.",
                "Have the server's owner fix its mounts: each is a folder of the host and a free path for it.",
            ),
            Self::GiveLock => (
                "Give `--lock` a file with `packages.lock` of an earlier result as it is.",
                "Pass `packages.lock` of an earlier result unchanged.",
            ),
            Self::NameLanguage => (
                "Name the language, as in `--language python`.",
                "Name the `language`.",
            ),
            Self::ListLanguages => (
                "Run `hotcell languages` for the list.",
                "Read `hotcell://languages` for the list.",
            ),
            Self::RenameFile => (
                "Give one of them another path: `--file HOST:PATH`.",
                "Give one of them another path in `files`.",
            ),
            Self::RaiseOutput => (
                "Raise the limit with `--output-limit`, or print less.",
                "Print less, or write to a file and print a summary.",
            ),
            Self::ShrinkFiles => (
                "Raise `--memory`: files in the workspace are a part of it.",
                "Give a larger `memory`, or pass less in `files`, which are a part of it.",
            ),
            Self::AllowReduced if surface == Surface::PackagesAdd => {
                return "Run `hotcell doctor` to see how to fix it.".to_owned();
            }
            Self::AllowReduced => (
                "Run `hotcell doctor` to see how to fix it, or accept a weaker sandbox with `--allow-reduced`.",
                "Have the server's owner fix it, or accept a weaker sandbox; `hotcell doctor` says how.",
            ),
        };
        match surface {
            Surface::CommandLine | Surface::PackagesAdd => shell.to_owned(),
            Surface::Mcp | Surface::Compat(_) => tool.to_owned(),
        }
    }
}

impl Surface {
    /// Where packages are named; nothing if they are not.
    fn packages(self) -> &'static str {
        match self {
            Self::CommandLine => "with `--package`",
            Self::PackagesAdd => "among the arguments",
            Self::Mcp => "in `packages`",
            Self::Compat(shown) if shown.packages => "in `packages`",
            Self::Compat(_) => "",
        }
    }

    /// By what hosts are granted.
    fn network(self) -> &'static str {
        match self {
            Self::CommandLine | Self::PackagesAdd => "`--network HOST`",
            Self::Mcp => "`network`",
            Self::Compat(shown) if shown.deno => "DENO_PERMISSION_ARGS=--allow-net=HOST",
            Self::Compat(_) => "another tool: this one has none",
        }
    }
}

impl Shown {
    /// How a host is granted.
    fn network(self, host: &str) -> String {
        match self.deno {
            true => {
                format!(
                    "Start the server with DENO_PERMISSION_ARGS=--allow-net={host} to grant it."
                )
            }
            false => "Do without the network: this tool grants none.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
