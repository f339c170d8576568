//! What a page says, without its tags: for whoever reads an answer and cannot look at pages.

/// Characters of what it says.
const LONGEST: usize = 2000;
/// Bytes of a page that are looked at.
const MOST: usize = 256 << 10;
/// What nobody reads.
const UNREAD: [&str; 5] = ["script", "style", "head", "svg", "template"];
/// What a line ends with.
const LINES: [&str; 12] = [
    "br", "p", "div", "tr", "li", "table", "ul", "ol", "h1", "h2", "h3", "pre",
];
const ENTITIES: [(&str, &str); 6] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    ("&nbsp;", " "),
    ("&amp;", "&"),
];

/// The words of a page; none if it has none.
pub fn words(page: &str) -> Option<String> {
    let mut rest = &page[..page.floor_char_boundary(MOST)];
    let mut said = String::new();
    while let Some((text, after)) = rest.split_once('<') {
        said.push_str(text);
        let name = tag_name(after);
        let unread = UNREAD.into_iter().find(|it| *it == name);
        // Without an end it goes on to that of the page, which is found once.
        rest = match unread {
            Some(name) => end_of(after, name).map_or("", |end| &after[end..]),
            None => after,
        };
        rest = rest.split_once('>').map_or("", |(_, rest)| rest);
        let is_line = LINES.contains(&name.trim_start_matches('/'));
        said.push(if is_line { '\n' } else { ' ' });
    }
    said.push_str(rest);
    let said = ENTITIES
        .iter()
        .fold(said, |said, (from, to)| said.replace(from, to));
    let lines = said.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.join(" ")
    });
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    let said = lines.join("\n");
    match said.char_indices().nth(LONGEST) {
        _ if said.is_empty() => None,
        None => Some(said),
        Some((end, _)) => Some(format!(
            "{}\n[... of a page of {} bytes]",
            &said[..end],
            page.len()
        )),
    }
}

/// The name after a `<`, in lower case, with the slash of an end.
fn tag_name(after: &str) -> String {
    let is_part = |it: &char| it.is_ascii_alphanumeric() || *it == '/';
    let name = after.chars().take(16).take_while(is_part);
    name.collect::<String>().to_ascii_lowercase()
}

/// Where the end of an element begins, if it has one.
fn end_of(after: &str, name: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = after[from..].find("</") {
        let at = from + at;
        if tag_name(&after[at + 1..]) == format!("/{name}") {
            return Some(at);
        }
        from = at + 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_is_between_its_tags() {
        let page = "<!DOCTYPE html><html><head><title>x</title></head><body><STYLE>p{}</style>\
            <h1>Sales &amp; more</h1><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>\
            <script>if (1 < 2) { alert('</p>') }</script><p>end &lt;3</body></html>";
        assert_eq!(
            words(page).as_deref(),
            Some("Sales & more\na b\n1 2\nend <3")
        );
        assert_eq!(words("<div><script>var x = 1</script></div>"), None);
        assert_eq!(words("plain").as_deref(), Some("plain"));
    }

    #[test]
    fn no_page_breaks_it_or_is_too_long() {
        for page in [
            "<",
            "<script>",
            "a <b",
            "</",
            "<é>",
            "&",
            "<script></scrip",
            "",
        ] {
            let _ = words(page);
        }
        let long = words(&"<p>é".repeat(1 << 18)).expect("words");
        assert!(long.chars().count() < LONGEST + 100);
        let nested = words(&"<script></".repeat(20_000));
        assert!(nested.is_none() || nested.is_some_and(|it| it.len() < 10_000));
    }
}
