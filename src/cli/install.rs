//! `hotcell install` and `hotcell uninstall`: our entry in the configuration of an MCP client.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;

use super::serve::{Compat, parse_address};
use super::{BAD_INPUT, OUR_FAILURE, print_error};
use crate::clients::{CLIENTS, Client, ClientFile, FileError, Reach, Unclear};
use crate::http::{Token, TokenError};
use crate::language::Surroundings;

/// Where `hotcell serve --http` is told to serve in our texts.
const PORT: u16 = 3917;

#[derive(clap::Args)]
pub struct Arguments {
    /// The client
    #[arg(value_name = "CLIENT", value_parser = names())]
    client: String,
    /// Have the client use a server that you start with `hotcell serve --http`, at this address [default: 127.0.0.1:3917]
    #[arg(long, value_name = "[ADDRESS:]PORT", num_args = 0..=1, require_equals = true, value_parser = parse_address)]
    http: Option<Option<SocketAddr>>,
    /// Have the client start hotcell in a container: for systems other than Linux [default engine: docker]
    #[arg(long, value_name = "ENGINE", num_args = 0..=1, require_equals = true, default_missing_value = "docker", value_parser = ["docker", "podman"], conflicts_with = "http")]
    container: Option<String>,
    /// With --container: the image with hotcell in it
    #[arg(long, value_name = "IMAGE", requires = "container", default_value = concat!("localhost/hotcell:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Have the server be compatible with another one (repeatable)
    #[arg(long = "as", value_name = "SERVER")]
    compat: Vec<Compat>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args)]
pub struct Uninstall {
    /// The client
    #[arg(value_name = "CLIENT", value_parser = names())]
    client: String,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name))
}

pub fn install(arguments: &Arguments) -> ExitCode {
    let Some(client) = Client::named(&arguments.client) else {
        return BAD_INPUT.into();
    };
    let mut serve = vec!["serve".to_owned()];
    for compat in &arguments.compat {
        serve.extend(["--as".to_owned(), compat.name()]);
    }
    let reach = match (&arguments.container, arguments.http) {
        (Some(engine), _) => {
            let command = in_container(engine, &arguments.image, serve);
            Ok((Reach::Program(command), None))
        }
        (None, None) => program(serve),
        (None, Some(address)) => {
            let address = address.unwrap_or((Ipv4Addr::LOCALHOST, PORT).into());
            serve.extend(["--http".to_owned(), address.to_string()]);
            token(arguments.dry_run).map(|token| {
                let reach = Reach::address(address, &token);
                (reach, Some((token, serve.join(" "))))
            })
        }
    };
    let (reach, http) = match reach {
        Ok(reach) => reach,
        Err((why, hint)) => {
            print_error(&why, hint.as_deref());
            return BAD_INPUT.into();
        }
    };
    let Some(entry) = client.entry(&reach) else {
        let why = format!("{} takes no address of a server in its file", client.title);
        print_error(&why, Some("Leave `--http` out."));
        return BAD_INPUT.into();
    };
    let change = Change {
        client,
        secret: http.as_ref().map(|(token, _)| token.as_str()),
        dry_run: arguments.dry_run,
        by_hand: client.add("", &entry).unwrap_or_default(),
        same: "has hotcell already",
        done: "added hotcell to",
        then: client.restart.to_owned(),
    };
    let code = change.make(&|file| client.add(file.text(), &entry));
    if let (true, Some((_, serve))) = (code == ExitCode::SUCCESS && !arguments.dry_run, &http) {
        say(&format!("Start the server: `hotcell {serve}`.\n"));
    }
    code
}

pub fn uninstall(arguments: &Uninstall) -> ExitCode {
    let Some(client) = Client::named(&arguments.client) else {
        return BAD_INPUT.into();
    };
    let change = Change {
        client,
        secret: None,
        dry_run: arguments.dry_run,
        by_hand: String::new(),
        same: "has no hotcell",
        done: "removed hotcell from",
        then: format!("Restart {}.", client.title),
    };
    change.make(&|file| without(client, file))
}

/// A file without our entry. If nothing else has changed since that was added, it is what it was before, to the byte: without the table
/// that was made for us.
fn without(client: &Client, file: &ClientFile) -> Result<String, Unclear> {
    let left = client.remove(file.text())?;
    let Some(entry) = client
        .entry(&Reach::Program(vec!["hotcell".to_owned()]))
        .filter(|_| left != file.text())
    else {
        return Ok(left);
    };
    let is_origin = |copy: &String| {
        let again = client
            .add(copy, &entry)
            .and_then(|added| client.remove(&added));
        client.remove(copy).is_ok_and(|it| it == *copy) && again.is_ok_and(|it| it == left)
    };
    Ok(file.copies().find(is_origin).unwrap_or(left))
}

/// One edit of one file, and how to talk about it.
struct Change<'a> {
    client: &'a Client,
    /// Not to be shown.
    secret: Option<&'a str>,
    dry_run: bool,
    /// What to write where we cannot.
    by_hand: String,
    same: &'a str,
    done: &'a str,
    then: String,
}

impl Change<'_> {
    fn make(&self, edit: &dyn Fn(&ClientFile) -> Result<String, Unclear>) -> ExitCode {
        let title = self.client.title;
        let Some(path) = self.client.path(&|name| std::env::var(name).ok()) else {
            print_error(
                &format!("there is no home, so no file of {title}"),
                Some("Set $HOME to an absolute path."),
            );
            return BAD_INPUT.into();
        };
        let file = match ClientFile::open(&path) {
            Ok(file) => file,
            Err(error) => return self.refuse(&path, &error.to_string()),
        };
        let old = file.text();
        let new = match edit(&file) {
            Ok(new) => new,
            Err(why) => {
                return self.refuse(
                    &path,
                    &format!("{} is left as it is: {why}", path.display()),
                );
            }
        };
        let shown = path.display();
        if new == old {
            say(&format!("{title}: {shown} {}\n", self.same));
            return ExitCode::SUCCESS;
        }
        if self.dry_run {
            say(&format!("{title}: {shown} would change\n"));
            say(&self.hide(&difference(old, &new)));
            return ExitCode::SUCCESS;
        }
        match file.replace(&new, self.secret.is_some()) {
            Ok(copy) => {
                say(&format!("{title}: {} {shown}\n", self.done));
                if let Some(copy) = copy {
                    say(&format!("The file as it was: {}\n", copy.display()));
                }
                say(&format!("{}\n", self.then));
                ExitCode::SUCCESS
            }
            Err(error @ FileError::Busy(_)) => {
                let hint = format!("Quit {title} and try again.");
                print_error(&error.to_string(), Some(&hint));
                OUR_FAILURE.into()
            }
            Err(error) => self.refuse(&path, &error.to_string()),
        }
    }

    fn refuse(&self, path: &Path, why: &str) -> ExitCode {
        let hint = match self.by_hand.is_empty() {
            true => format!("Remove hotcell from {} by hand.", path.display()),
            false => {
                let text = self.hide(self.by_hand.trim_end());
                format!("Correct the file, or add this to it by hand:\n{text}")
            }
        };
        print_error(why, Some(&hint));
        BAD_INPUT.into()
    }

    fn hide(&self, text: &str) -> String {
        match self.secret {
            Some(secret) => text.replace(secret, "…"),
            None => text.to_owned(),
        }
    }
}

type Found = (Reach, Option<(String, String)>);
type Refused = (String, Option<String>);

/// The command that starts this program again.
fn program(serve: Vec<String>) -> Result<Found, Refused> {
    let own = std::env::current_exe().ok().filter(|path| path.exists());
    let own = own.as_deref().and_then(Path::to_str).ok_or_else(|| {
        let why = "cannot tell where the program hotcell is".to_owned();
        (why, None)
    })?;
    let mut command = starter(own);
    command.extend(serve);
    Ok((Reach::Program(command), None))
}

/// The command that starts hotcell in a container, with all that its own walls need and no more.
fn in_container(engine: &str, image: &str, serve: Vec<String>) -> Vec<String> {
    // A masked /proc lets no sandbox have one of its own.
    let unmask = match engine {
        "podman" => "unmask=ALL",
        _ => "systempaths=unconfined",
    };
    let mut command = vec![engine.to_owned(), "run".to_owned()];
    command.extend(IN_CONTAINER.map(str::to_owned));
    command.push(format!("--security-opt={unmask}"));
    command.push(image.to_owned());
    command.extend(serve);
    command
}

/// Engines forbid by their filter what sandboxes are made of; deploy/seccomp.json is a narrower one where there is a file to name.
const IN_CONTAINER: [&str; 7] = [
    "--rm",
    "--interactive",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--security-opt=seccomp=unconfined",
    "--user=1000:1000",
    "--memory=4g",
];

/// What npx and uvx unpack for one start is gone some day, so they are named instead of it.
fn starter(own: &str) -> Vec<String> {
    let words: &[&str] = match own {
        path if path.contains("/_npx/") => &["npx", "-y", "hotcell"],
        path if path.contains("/uv/archive-v0/") => &["uvx", "hotcell-mcp"],
        path => &[path],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The token that `hotcell serve --http` will ask for. A dry run makes none.
fn token(dry_run: bool) -> Result<String, Refused> {
    let refused = |error: TokenError| (error.to_string(), error.hint());
    if let Ok(token) = std::env::var("HOTCELL_TOKEN") {
        let token = Token::parse(&token).map_err(refused)?;
        return Ok(token.reveal().to_owned());
    }
    let Some(folder) = Surroundings::from_env().state else {
        let hint = "Set $HOME to an absolute path, or $HOTCELL_TOKEN.".to_owned();
        return Err(("there is no folder for the token".to_owned(), Some(hint)));
    };
    let file = folder.join("token");
    if dry_run && !file.exists() {
        return Ok("the token that is made then".to_owned());
    }
    let token = Token::at(&file).map_err(refused)?;
    Ok(token.reveal().to_owned())
}

/// The lines that differ, with one around them. An edit is in one place, so the equal ends are all there is to find.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let ends = old[start..].iter().rev().zip(new[start..].iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let around = |sign: char, lines: &[&str]| -> String {
        lines
            .iter()
            .map(|line| format!("{sign} {line}\n"))
            .collect()
    };
    let from = start.saturating_sub(1);
    let after = &new[new.len() - end..];
    [
        format!("@@ line {} @@\n", from + 1),
        around(' ', &new[from..start]),
        around('-', &old[start..old.len() - end]),
        around('+', &new[start..new.len() - end]),
        around(' ', &after[..after.len().min(1)]),
    ]
    .concat()
}

fn say(text: &str) {
    // Nobody left to read it is no failure of ours.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_for_one_start_is_named_by_who_unpacks_it() {
        let npx = "/h/.npm/_npx/5b1/node_modules/hotcell-linux-x64/bin/hotcell";
        assert_eq!(starter(npx), ["npx", "-y", "hotcell"]);
        let uvx = "/h/.cache/uv/archive-v0/x1/bin/hotcell";
        assert_eq!(starter(uvx), ["uvx", "hotcell-mcp"]);
        assert_eq!(starter("/usr/bin/hotcell"), ["/usr/bin/hotcell"]);
    }

    #[test]
    fn a_difference_is_what_is_between_the_equal_ends() {
        let shown = difference("a\nb\nc\nd\n", "a\nb\nx\ny\nd\ne\n");
        assert_eq!(shown, "@@ line 2 @@\n  b\n- c\n- d\n+ x\n+ y\n+ d\n+ e\n");
        assert_eq!(difference("", "a\n"), "@@ line 1 @@\n+ a\n");
        assert_eq!(difference("a\n", ""), "@@ line 1 @@\n- a\n");
    }
}
