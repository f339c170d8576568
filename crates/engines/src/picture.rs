//! A picture for people to look at: SVG is drawn, others that are too large are made smaller. Arguments: the file to write, the longest side
//! in pixels, and the most bytes. A file that ends in `.six` is written as sixels, any other as PNG.

mod sixel;

use resvg::tiny_skia::{FilterQuality, Pixmap, PixmapPaint, Transform};

use super::{Failed, Program, ours, svg};

/// More pixels are not decoded.
const MOST_PIXELS: u64 = 100 << 20;

pub fn run(program: &Program) -> Result<u8, Failed> {
    let [path, side, bytes] = &program.args[..] else {
        return Err(ours("a file, a length and a size are needed".to_owned()));
    };
    let number = |text: &str| {
        text.parse()
            .map_err(|_| ours(format!("`{text}` is no number")))
    };
    let (side, bytes): (u32, u32) = (number(side)?, number(bytes)?);
    let mut picture = read(program, side)?;
    loop {
        let longest = picture.width().max(picture.height());
        if longest > side {
            picture = scaled(&picture, side as f32 / longest as f32)?;
        }
        let made = match path.ends_with(".six") {
            true => sixel::encode(&picture).into_bytes(),
            false => picture
                .encode_png()
                .map_err(|error| ours(error.to_string()))?,
        };
        if made.len() <= bytes as usize || longest < 16 {
            let written = std::fs::write(path, &made);
            written.map_err(|error| ours(format!("cannot write the picture: {error}")))?;
            return Ok(0);
        }
        // A picture has about as many bytes as pixels, times something.
        let by = (bytes as f32 / made.len() as f32).sqrt() * 0.95;
        picture = scaled(&picture, by.clamp(0.1, 0.9))?;
    }
}

fn read(program: &Program, side: u32) -> Result<Pixmap, Failed> {
    if program.file.ends_with(".svg") {
        return svg::draw(program, Some(side));
    }
    let size = imagesize::blob_size(&program.source).map_err(|error| ours(error.to_string()))?;
    if (size.width as u64).saturating_mul(size.height as u64) > MOST_PIXELS {
        return Err(ours("it has too many pixels".to_owned()));
    }
    if program.file.ends_with(".png") {
        return Pixmap::decode_png(&program.source).map_err(|error| ours(error.to_string()));
    }
    // resvg reads the others as parts of an SVG. Twice too large: they are halved better than they are drawn.
    let (width, height, file) = (size.width, size.height, &program.file);
    let text = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"><image href="{file}" width="{width}" height="{height}"/></svg>"#
    );
    let picture = Program {
        file: "picture.svg".to_owned(),
        source: text.into_bytes(),
        args: Vec::new(),
        interrupts: program.interrupts,
    };
    svg::draw(&picture, Some(side.saturating_mul(2)))
}

/// By halves, so that each pixel is made of all that it stands for.
fn scaled(picture: &Pixmap, by: f32) -> Result<Pixmap, Failed> {
    if by < 0.5 {
        return scaled(&scaled(picture, 0.5)?, by * 2.0);
    }
    let side = |length: u32| ((length as f32 * by).round() as u32).max(1);
    let (width, height) = (side(picture.width()), side(picture.height()));
    let mut smaller = Pixmap::new(width, height).ok_or_else(|| ours("no room".to_owned()))?;
    let paint = PixmapPaint {
        quality: FilterQuality::Bilinear,
        ..PixmapPaint::default()
    };
    let across = width as f32 / picture.width() as f32;
    let down = height as f32 / picture.height() as f32;
    let fit = Transform::from_scale(across, down);
    smaller.draw_pixmap(0, 0, picture.as_ref(), &paint, fit, None);
    Ok(smaller)
}
