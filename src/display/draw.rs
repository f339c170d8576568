//! Pictures for an answer: SVG is drawn, and what is too large is made smaller, each in a cell of its own.

use std::time::Duration;

use super::picture::png_size;
use super::{Displayed, Kind, Shown};
use crate::cell::{Launch, Provider, Requirement};
use crate::request::{CellPath, FileSource, InputFile};
use crate::run::{self, Surface};

/// What a picture in an answer may have: more costs a model a lot and shows it nothing.
const LONGEST_SIDE: u32 = 1568;
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
    let name = format!("picture.{}", displayed.kind.extension());
    let (side, size) = (LONGEST_SIDE.to_string(), LARGEST_PICTURE.to_string());
    let argv = [
        jail::ENGINE,
        "picture",
        &name,
        "out/drawn.png",
        &side,
        &size,
    ];
    let (source, out) = (CellPath::parse(&name).ok()?, CellPath::parse("out").ok()?);
    let folder = InputFile {
        path: out.clone(),
        source: FileSource::EmptyFolder,
        mode: 0o755,
    };
    let picture = InputFile::from_bytes(source, displayed.data.clone());
    let launch = Launch::new(argv.map(str::to_owned).into())
        .files([picture, folder])
        .timeout(TIMEOUT)
        .collect(out);
    let surface = Surface::silent(requirement);
    let ended = run::run(provider, &launch, surface, std::future::pending()).await;
    let made = ended.ok()?.collected.into_iter().next()?;
    match made.source {
        // An SVG may have been made to break what draws it.
        FileSource::Bytes(bytes) if Kind::of("png", &bytes) == Some(Kind::Png) => {
            (bytes.len() <= LARGEST_PICTURE).then_some(bytes)
        }
        _ => None,
    }
}
