//! SVG drawn to PNG, by resvg. The picture goes to standard output, or into the file that the
//! first argument names.

use std::io::{self, Write};
use std::sync::Arc;

use resvg::{tiny_skia, usvg};

use super::{Failed, Program, ours};

pub fn run(program: &Program) -> Result<u8, Failed> {
    let png = draw(program, None)?
        .encode_png()
        .map_err(|error| ours(error.to_string()))?;
    let written = match program.args.first().map(String::as_str) {
        Some(path) if path != "-" => std::fs::write(path, &png),
        _ => io::stdout().write_all(&png),
    };
    written.map_err(|error| ours(format!("cannot write the picture: {error}")))?;
    Ok(0)
}

/// Draws it, no larger than `longest` on either side if that is said.
pub fn draw(program: &Program, longest: Option<u32>) -> Result<tiny_skia::Pixmap, Failed> {
    let text = program.text()?;
    let mut options = usvg::Options {
        // Pictures that it names are files of the workspace; there is no network.
        resources_dir: Some(".".into()),
        ..usvg::Options::default()
    };
    if text.contains("<text") || text.contains(":text") {
        // Reading every font costs more than all the rest.
        Arc::make_mut(&mut options.fontdb).load_system_fonts();
    }
    let broken = |message: String| Failed {
        code: 1,
        message: format!("{}:{}", program.file, message),
    };
    let tree = usvg::Tree::from_str(text, &options).map_err(|error| {
        let line = match &error {
            usvg::Error::ParsingFailed(error) => error.pos().row,
            _ => 1,
        };
        broken(format!("{line}: {error}"))
    })?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let by = longest.map_or(1.0, |longest| (longest as f32 / width.max(height)).min(1.0));
    let size = tree
        .size()
        .scale_by(by)
        .unwrap_or(tree.size())
        .to_int_size();
    let mut picture = tiny_skia::Pixmap::new(size.width(), size.height()).ok_or_else(|| {
        broken(format!(
            "1: {} x {} is too large",
            size.width(),
            size.height()
        ))
    })?;
    if longest.is_some() {
        // For people to look at: what has no background is meant for paper.
        picture.fill(tiny_skia::Color::WHITE);
    }
    resvg::render(
        &tree,
        tiny_skia::Transform::from_scale(by, by),
        &mut picture.as_mut(),
    );
    Ok(picture)
}
