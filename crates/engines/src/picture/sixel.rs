//! A picture in the characters of a terminal: the DEC sixel format, in the 216 colours that are even steps of red, green and blue.

use std::fmt::Write;

use resvg::tiny_skia::Pixmap;

const STEPS: u32 = 6;

/// On white, as on a page.
pub fn encode(picture: &Pixmap) -> String {
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let colour = |channel: u8, alpha: u8| {
        let on_white = u32::from(channel) + 255 - u32::from(alpha);
        (on_white * (STEPS - 1) + 127) / 255
    };
    let pixels: Vec<u8> = picture
        .pixels()
        .iter()
        .map(|it| {
            let of = |channel| colour(channel, it.alpha()).min(STEPS - 1);
            ((of(it.red()) * STEPS + of(it.green())) * STEPS + of(it.blue())) as u8
        })
        .collect();
    let mut text = format!("\x1bPq\"1;1;{width};{height}");
    for number in 0..STEPS * STEPS * STEPS {
        let percent = |step: u32| step * 100 / (STEPS - 1);
        let (red, green, blue) = (number / 36, number / 6 % 6, number % 6);
        let (red, green, blue) = (percent(red), percent(green), percent(blue));
        let _ = write!(text, "#{number};2;{red};{green};{blue}");
    }
    for band in pixels.chunks(width * 6) {
        for colour in 0..=u8::MAX {
            if band.contains(&colour) {
                let _ = write!(text, "#{colour}");
                row(&mut text, band, width, colour);
                text.push('$');
            }
        }
        text.push('-');
    }
    text + "\x1b\\"
}

/// The pixels of one colour in up to six lines: a character for each column, equal ones counted.
fn row(text: &mut String, band: &[u8], width: usize, colour: u8) {
    let column = |x: usize| {
        let lines = band.iter().skip(x).step_by(width).enumerate();
        let bits = lines.map(|(y, own)| u8::from(*own == colour) << y);
        char::from(b'?' + bits.sum::<u8>())
    };
    let mut at = 0;
    while at < width {
        let own = column(at);
        let same = (at..width).take_while(|x| column(*x) == own).count();
        if same > 3 {
            let _ = write!(text, "!{same}{own}");
        } else {
            text.extend(std::iter::repeat_n(own, same));
        }
        at += same;
    }
}

#[cfg(test)]
mod tests {
    use resvg::tiny_skia::Color;

    use super::*;

    #[test]
    fn a_red_square_is_one_counted_run_for_each_band() {
        let mut picture = Pixmap::new(10, 8).unwrap();
        picture.fill(Color::from_rgba8(255, 0, 0, 255));
        let text = encode(&picture);
        assert!(text.starts_with("\x1bPq\"1;1;10;8#0;2;0;0;0"), "{text}");
        assert!(text.contains("#180;2;100;0;0"), "{text}");
        assert!(text.ends_with("#180!10~$-#180!10B$-\x1b\\"), "{text}");
    }
}
