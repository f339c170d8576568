//! What a call shows at a terminal: its output as it comes, and pictures, in a file and where the terminal can.

use std::cell::{Cell, OnceCell};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::cli::run::show;
use crate::display::{Displayed, Kind};
use crate::output::RunOutput;
use crate::random::random_name;
use crate::service::{Observer, Output, Service};

/// Prints all that a call prints, also what it says when it is stopped.
pub struct Screen {
    /// Whether pictures are drawn as an answer shows them.
    pub draws: bool,
}

impl Observer for Screen {
    type Heard = ();

    fn wants_long_output_stored(&self) -> bool {
        self.draws
    }

    async fn hear(self, mut output: Output) {
        while let Some(event) = output.recv().await {
            // Nobody left to read it: the next prompt finds out.
            let _ = show(&event);
        }
    }
}

/// How a terminal takes pictures, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    Kitty,
    Iterm,
    /// Takes characters that each are six pixels, which must be made first.
    Sixel,
    Plain,
}

impl Terminal {
    /// Told by what terminals put into the environment of what they start.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is = |name: &str, values: &[&str]| {
            variable(name).is_some_and(|found| values.contains(&found.as_str()))
        };
        // What it would pass on is not known to it.
        if variable("TMUX").is_some() || variable("STY").is_some() {
            return Self::Plain;
        }
        if variable("KITTY_WINDOW_ID").is_some()
            || is("TERM", &["xterm-kitty", "xterm-ghostty"])
            || is("TERM_PROGRAM", &["ghostty"])
        {
            return Self::Kitty;
        }
        let is_iterm = is("TERM_PROGRAM", &["iTerm.app", "WezTerm", "mintty"])
            || is("LC_TERMINAL", &["iTerm2"]);
        let is_sixel = variable("TERM").is_some_and(|term| {
            let names = ["foot", "mlterm", "contour"];
            names.iter().any(|name| term.starts_with(name))
        });
        match () {
            () if is_iterm => Self::Iterm,
            () if is_sixel || variable("KONSOLE_VERSION").is_some() => Self::Sixel,
            () => Self::Plain,
        }
    }

    /// What has it show a picture, if it can.
    fn picture(self, kind: Kind, data: &[u8]) -> Option<String> {
        let text = STANDARD.encode(data);
        match self {
            // In pieces, of which the last says so.
            Self::Kitty if kind == Kind::Png => {
                let mut pieces = text.as_bytes().chunks(4096).peekable();
                let mut all = String::new();
                let mut first = "a=T,f=100,";
                while let Some(piece) = pieces.next() {
                    let more = u8::from(pieces.peek().is_some());
                    let piece = String::from_utf8_lossy(piece);
                    all += &format!("\x1b_G{first}m={more};{piece}\x1b\\");
                    first = "";
                }
                Some(all + "\n")
            }
            Self::Iterm => {
                let size = data.len();
                Some(format!("\x1b]1337;File=inline=1;size={size}:{text}\x07\n"))
            }
            Self::Kitty | Self::Sixel | Self::Plain => None,
        }
    }
}

/// What has a terminal show the pictures of a call.
pub async fn inline(terminal: Terminal, output: &RunOutput, service: &Service) -> Vec<String> {
    let printed = output
        .image
        .iter()
        .filter_map(|image| Some((Kind::of_picture(image.mime_type)?, &image.data[..])));
    let shown = output.displays.iter().filter_map(Displayed::picture);
    let mut inline = Vec::new();
    for (kind, data) in printed.chain(shown) {
        inline.extend(match terminal {
            Terminal::Sixel => service.sixels((kind, data)).await.map(|it| it + "\n"),
            _ => terminal.picture(kind, data),
        });
    }
    inline
}

/// Where pictures and pages go.
pub struct Pictures {
    out: Option<PathBuf>,
    made: OnceCell<PathBuf>,
    saved: Cell<usize>,
}

impl Pictures {
    pub fn new(out: Option<&Path>) -> Self {
        Self {
            out: out.map(Path::to_owned),
            made: OnceCell::new(),
            saved: Cell::new(0),
        }
    }

    /// Saves what a call showed that is no text; a line about each.
    pub fn save(&self, output: &RunOutput) -> Vec<String> {
        let printed = output.image.iter();
        let printed = printed.filter_map(|it| Some((Kind::of_picture(it.mime_type)?, &it.data)));
        let others = output.displays.iter().filter(|it| !it.is_whole_text());
        let others = others.map(|it: &Displayed| (it.kind, &it.data));
        let line = |(kind, data): (Kind, &Vec<u8>)| match self.write(kind, data) {
            Ok(path) => format!("{} in {}", kind.mime(), path.display()),
            Err(error) => format!("{} could not be saved: {error}", kind.mime()),
        };
        printed.chain(others).map(line).collect()
    }

    fn write(&self, kind: Kind, data: &[u8]) -> io::Result<PathBuf> {
        let folder = self.folder()?;
        loop {
            let number = self.saved.get() + 1;
            self.saved.set(number);
            let path = folder.join(format!("{number}.{}", kind.extension()));
            let mut open = OpenOptions::new();
            match open.write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => return file.write_all(data).map(|()| path),
                // Of an earlier session.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn folder(&self) -> io::Result<&PathBuf> {
        if let Some(folder) = self.made.get() {
            return Ok(folder);
        }
        let folder = match &self.out {
            Some(out) => {
                let folder = out.join("display");
                fs::create_dir_all(&folder)?;
                folder
            }
            None => {
                let name = format!("hotcell-{}", &random_name()[..8]);
                let folder = std::env::temp_dir().join(name);
                DirBuilder::new().mode(0o700).create(&folder)?;
                folder
            }
        };
        Ok(self.made.get_or_init(|| folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(variables: &[(&str, &str)]) -> Terminal {
        Terminal::detect(|name| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn terminals_that_show_pictures_are_known_by_their_environment() {
        assert_eq!(terminal(&[("KITTY_WINDOW_ID", "1")]), Terminal::Kitty);
        assert_eq!(terminal(&[("TERM", "xterm-kitty")]), Terminal::Kitty);
        assert_eq!(terminal(&[("TERM_PROGRAM", "iTerm.app")]), Terminal::Iterm);
        assert_eq!(terminal(&[("TERM", "foot-extra")]), Terminal::Sixel);
        assert_eq!(terminal(&[("TERM", "xterm-256color")]), Terminal::Plain);
        let in_tmux = [("KITTY_WINDOW_ID", "1"), ("TMUX", "/tmp/tmux")];
        assert_eq!(terminal(&in_tmux), Terminal::Plain);
    }

    #[test]
    fn a_picture_is_sent_in_pieces_or_whole() {
        let data = vec![0; 4000];
        let sent = Terminal::Kitty.picture(Kind::Png, &data).unwrap();
        assert!(sent.starts_with("\x1b_Ga=T,f=100,m=1;AAAA"), "{sent:.40}");
        assert_eq!(sent.matches("\x1b_G").count(), 2);
        assert!(sent.contains("\x1b_Gm=0;"));
        assert_eq!(Terminal::Kitty.picture(Kind::Jpeg, &data), None);
        let sent = Terminal::Iterm.picture(Kind::Jpeg, &data).unwrap();
        assert!(sent.starts_with("\x1b]1337;File=inline=1;size=4000:AAAA"));
        assert_eq!(Terminal::Plain.picture(Kind::Png, &data), None);
    }
}
