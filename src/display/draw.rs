//! Pictures for an answer: SVG is drawn, and what is too large is made smaller, each in a cell of its own.

use std::time::Duration;

use super::picture::png_size;
use super::{Displayed, Kind, Shown};
use crate::cell::{Launch, Provider, Requirement};
use crate::request::{CellPath, FileSource, InputFile};
use crate::run::{self, Surface};

/// What a picture in an answer may have: more costs a model a lot and shows it nothing.
const LONGEST_SIDE: u32 = 1568;
const LONGEST_IN_TERMINAL: u32 = 800;
pub const LARGEST_PICTURE: usize = 1 << 20;
/// For one that is drawn.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Draws what an answer cannot show as it is. What cannot be drawn is left as it is.
pub async fn draw(shown: &mut Shown, provider: &dyn Provider, requirement: Requirement) {
    for displayed in shown.displays.iter_mut().chain(&mut shown.saved) {
        if must_be_drawn(displayed) {
            displayed.drawn = drawn(displayed, provider, requirement).await;
        }
    }
}

/// Whether an answer cannot show it as it is, but what a cell makes of it.
pub fn must_be_drawn(displayed: &Displayed) -> bool {
    match displayed.kind {
        Kind::Svg => true,
        Kind::Png => {
            let fits = |(width, height): (u32, u32)| width.max(height) <= LONGEST_SIDE;
            displayed.bytes > LARGEST_PICTURE || !png_size(&displayed.data).is_some_and(fits)
        }
        Kind::Jpeg | Kind::Gif | Kind::Webp => displayed.bytes > LARGEST_PICTURE,
        Kind::Html | Kind::Json | Kind::Text => false,
    }
}

async fn drawn(
    displayed: &Displayed,
    provider: &dyn Provider,
    requirement: Requirement,
) -> Option<Vec<u8>> {
    let picture = (displayed.kind, &displayed.data[..]);
    let limits = (LONGEST_SIDE, LARGEST_PICTURE);
    let made = convert(picture, "drawn.png", limits, (provider, requirement)).await?;
    // An SVG may have been made to break what draws it.
    (Kind::of("png", &made) == Some(Kind::Png)).then_some(made)
}

/// A picture for a terminal that takes sixels.
pub async fn sixels(
    picture: (Kind, &[u8]),
    provider: &dyn Provider,
    requirement: Requirement,
) -> Option<String> {
    let limits = (LONGEST_IN_TERMINAL, 4 * LARGEST_PICTURE);
    let made = convert(picture, "drawn.six", limits, (provider, requirement)).await?;
    let inner = made.strip_prefix(b"\x1bPq")?.strip_suffix(b"\x1b\\")?;
    // SECURITY: it goes to a terminal as it is. Nothing of it can begin another command there.
    let is_plain = inner.iter().all(|byte| (b' '..=b'~').contains(byte));
    is_plain.then(|| String::from_utf8(made).ok()).flatten()
}

/// Has a cell make another file of a picture, within a longest side and a number of bytes.
async fn convert(
    (kind, data): (Kind, &[u8]),
    to: &str,
    (side, most): (u32, usize),
    (provider, requirement): (&dyn Provider, Requirement),
) -> Option<Vec<u8>> {
    let name = format!("picture.{}", kind.extension());
    let (side, size, to) = (side.to_string(), most.to_string(), format!("out/{to}"));
    let argv = [jail::ENGINE, "picture", &name, &to, &side, &size];
    let (source, out) = (CellPath::parse(&name).ok()?, CellPath::parse("out").ok()?);
    let folder = InputFile {
        path: out.clone(),
        source: FileSource::EmptyFolder,
        mode: 0o755,
    };
    let picture = InputFile::from_bytes(source, data);
    let launch = Launch::new(argv.map(str::to_owned).into())
        .files([picture, folder])
        .timeout(TIMEOUT)
        .collect(out);
    let surface = Surface::silent(requirement);
    let ended = run::run(provider, &launch, surface, std::future::pending()).await;
    let made = ended.ok()?.collected.into_iter().next()?;
    match made.source {
        FileSource::Bytes(bytes) => (bytes.len() <= most).then_some(bytes),
        _ => None,
    }
}
