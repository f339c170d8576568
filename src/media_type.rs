//! What a file is, told by its name and its first bytes.

/// For names that say nothing.
pub const UNKNOWN: &str = "application/octet-stream";

/// The media type of a file: by its name, but a name alone makes no picture.
pub fn of(name: &str, start: &[u8]) -> &'static str {
    match of_name(name) {
        "image/svg+xml" => "image/svg+xml",
        named if named.starts_with("image/") => picture_kind(start).unwrap_or(UNKNOWN),
        named => named,
    }
}

/// What kind of picture begins like this, if one does.
pub fn picture_kind(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// What follows the last dot of a name, in lower case; nothing if there is none.
pub fn extension(name: &str) -> String {
    let file = name.rsplit('/').next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// The media type that the last part of a name says.
pub fn of_name(name: &str) -> &'static str {
    match extension(name).as_str() {
        "csv" => "text/csv",
        "tsv" => "text/tab-separated-values",
        "json" | "ipynb" | "geojson" => "application/json",
        "jsonl" | "ndjson" => "application/x-ndjson",
        "html" | "htm" => "text/html",
        "md" => "text/markdown",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "css" => "text/css",
        "js" | "mjs" | "cjs" => "text/javascript",
        "txt" | "log" | "py" | "rb" | "sh" | "c" | "h" | "rs" | "go" | "java" | "ts" | "sql"
        | "r" | "ini" | "cfg" | "tex" | "diff" | "patch" => "text/plain",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "tar" => "application/x-tar",
        "sqlite" | "db" => "application/vnd.sqlite3",
        "parquet" => "application/vnd.apache.parquet",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "wasm" => "application/wasm",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_makes_no_picture() {
        assert_eq!(of("fake.png", b"<html>"), UNKNOWN);
        assert_eq!(of("true.png", b"\x89PNG\r\n\x1a\n"), "image/png");
        assert_eq!(of("wrong.png", b"\xff\xd8\xff"), "image/jpeg");
        assert_eq!(of("a.csv", b"GIF89a"), "text/csv");
    }

    #[test]
    fn the_last_extension_tells_and_a_hidden_file_has_none() {
        assert_eq!(of_name("out/data.v2.CSV"), "text/csv");
        assert_eq!(of_name("a.csv/data"), UNKNOWN);
        assert_eq!(of_name(".csv"), UNKNOWN);
        assert_eq!(of_name(""), UNKNOWN);
    }
}
