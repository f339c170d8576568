//! Telling the kinds of pictures and documents apart by their bytes.

use serde::{Serialize, Serializer};

use crate::media_type::picture_kind;

/// What a program can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Png,
    Jpeg,
    Gif,
    Webp,
    Svg,
    Html,
    Json,
    Text,
}

impl Kind {
    /// What a file is whose name ends like this; none if its bytes say something else.
    pub fn of(extension: &str, data: &[u8]) -> Option<Self> {
        match extension {
            "png" | "jpg" | "jpeg" | "gif" | "webp" => Self::of_picture(picture_kind(data)?),
            "svg" => is_svg(data).then_some(Self::Svg),
            "html" => std::str::from_utf8(data).ok().map(|_| Self::Html),
            "json" => {
                let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok();
                is_json.then_some(Self::Json)
            }
            "txt" => Some(Self::Text),
            _ => None,
        }
    }

    /// By the name that pictures have among what is printed.
    pub fn of_picture(mime: &str) -> Option<Self> {
        let all = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];
        all.into_iter().find(|kind| kind.mime() == mime)
    }

    pub fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Svg => "image/svg+xml",
            Self::Html => "text/html",
            Self::Json => "application/json",
            Self::Text => "text/plain",
        }
    }

    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
            Self::Webp => "webp",
            Self::Svg => "svg",
            Self::Html => "html",
            Self::Json => "json",
            Self::Text => "txt",
        }
    }

    /// Whether an answer has it as it is, in its text.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Json)
    }

    /// Whether it is one, or is drawn as one.
    pub fn is_picture(self) -> bool {
        self.is_raster() || self == Self::Svg
    }

    /// Whether clients show it as it is.
    pub fn is_raster(self) -> bool {
        matches!(self, Self::Png | Self::Jpeg | Self::Gif | Self::Webp)
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.mime())
    }
}

/// Width and height of a PNG, as its head says.
pub fn png_size(data: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?));
    Some((number(16)?, number(20)?))
}

fn is_svg(data: &[u8]) -> bool {
    let start = &data[..data.len().min(4096)];
    let text = String::from_utf8_lossy(start);
    text.trim_start().starts_with('<') && text.contains("<svg") && std::str::from_utf8(data).is_ok()
}
