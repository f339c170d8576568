use super::*;

/// What `tests/egress/hosts.txt` is read under.
const GRANT: &str = "allowed.test, *.wild.test, port.test:8443, 203.0.113.9, [2001:db8::9]:443";

#[test]
fn each_hostile_host_gets_the_verdict_of_the_table() {
    let network = Network::parse(GRANT).unwrap();
    let mut counts = [0; 3];
    for line in include_str!("../../../tests/egress/hosts.txt").lines() {
        let Some((expected, text)) = line.split_once('\t').filter(|_| !line.starts_with('#'))
        else {
            continue;
        };
        let text = unescaped(text);
        let parsed = Target::parse(&text, Some(443));
        let verdict = match &parsed {
            Err(_) => "bad".to_owned(),
            Ok(target) if network.allows(target) => format!("yes {target}"),
            Ok(_) => "no".to_owned(),
        };
        let shown: String = text.escape_debug().take(100).collect();
        assert_eq!(verdict, expected, "{shown}: {parsed:?}");
        let kind = ["bad", "no", "yes"]
            .iter()
            .position(|it| verdict.starts_with(it));
        counts[kind.unwrap()] += 1;
    }
    let [bad, no, yes] = counts;
    assert!(bad + no >= 200 && yes >= 15, "{counts:?}");
}

/// Programs put hosts together from these; a seed makes it the same every time.
const PIECES: [&str; 34] = [
    "allowed",
    "test",
    "wild",
    "port",
    "evil",
    "a",
    "A",
    "-",
    ".",
    ".",
    ".",
    ":",
    "443",
    "8443",
    "0",
    "203.0.113.9",
    "127.0.0.1",
    "0x7f",
    "[",
    "]",
    "::",
    "::ffff:",
    "@",
    "/",
    "\\",
    "#",
    "%",
    "\0",
    "\r\n",
    " ",
    "*",
    "xn--",
    "é",
    "\u{3002}",
];

#[test]
fn whatever_is_granted_is_what_a_plain_reading_of_labels_grants() {
    let network = Network::parse(GRANT).unwrap();
    let mut state = 0x5eed_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut granted = 0;
    for _ in 0..300_000 {
        let mut text = String::new();
        for _ in 0..=next(8) {
            text += PIECES[next(PIECES.len())];
        }
        let parsed = Target::parse(&text, Some(443));
        let allowed = parsed.as_ref().is_ok_and(|target| network.allows(target));
        assert_eq!(allowed, plainly_granted(&text), "{text:?}: {parsed:?}");
        granted += usize::from(allowed);
        let Ok(target) = parsed else { continue };
        // Its one written form is plain, and reads back as itself.
        let written = target.to_string();
        let plain =
            |byte: u8| byte.is_ascii_digit() || b"abcdefghijklmnopqrstuvwxyz-.:[]".contains(&byte);
        assert!(written.bytes().all(plain), "{text:?} became {written:?}");
        assert_eq!(Target::parse(&written, None), Ok(target));
    }
    assert!(
        granted > 200,
        "only {granted} were granted: the test tests little"
    );
}

/// The grant above, read another way: by hand, label by label.
fn plainly_granted(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !port.contains(']') => {
            let exact = |known: &&u32| known.to_string() == port;
            let Some(port) = [80, 443, 8443].iter().find(exact) else {
                return false;
            };
            (host, *port)
        }
        _ => (text, 443),
    };
    let usual = port != 8443;
    if let Some(inside) = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        return match inside
            .parse::<std::net::Ipv6Addr>()
            .map(|address| address.segments())
        {
            Ok([0x2001, 0xdb8, 0, 0, 0, 0, 0, 9]) => port == 443,
            Ok([0, 0, 0, 0, 0, 0xffff, 0xcb00, 0x7109]) => usual,
            _ => false,
        };
    }
    if host == "203.0.113.9" {
        return usual;
    }
    let lower = host.to_ascii_lowercase();
    let mut labels: Vec<&str> = lower.split('.').collect();
    if labels.last() == Some(&"") {
        labels.pop();
    }
    let is_label = |label: &&str| {
        let inner = label.trim_matches('-') == *label && !label.is_empty() && label.len() < 64;
        inner
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    if !labels.iter().all(is_label) || lower.len() > 253 {
        return false;
    }
    match labels.as_slice() {
        ["allowed", "test"] | [_, .., "wild", "test"] => usual,
        ["port", "test"] => port == 8443,
        _ => false,
    }
}

#[test]
fn a_grant_reads_back_as_it_is_written_and_a_bad_one_says_why() {
    for text in [
        "none",
        "all",
        "a.test",
        "*.a.test:8443,[2001:db8::1]:443,1.2.3.4",
    ] {
        assert_eq!(Network::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Network::parse(" A.test. , ").unwrap().to_string(), "a.test");
    assert_eq!(Network::parse(""), Ok(Network::None));
    assert_eq!(Network::parse("a.test,all"), Ok(Network::All));
    assert_eq!(Network::parse("none,a.test"), Err(BadGrant::NoneAndMore));
    for bad in [
        "ftp://a.test",
        "*",
        "*.1.2.3.4",
        "*a.test",
        "a.*.test",
        "a.test:0",
        "münchen.test",
        "10.0.0.0/8",
        "127.1",
    ] {
        assert!(
            matches!(Network::parse(bad), Err(BadGrant::Host { .. })),
            "{bad}"
        );
    }
    let many = vec!["a.test"; MOST + 1].join(",");
    assert_eq!(Network::parse(&many), Err(BadGrant::TooMany));
}

#[test]
fn a_ceiling_narrows_all_and_refuses_what_lies_beyond_it() {
    let network = |text: &str| Network::parse(text).unwrap();
    let ceiling = network("a.test,*.b.test:8443,c.test");
    for (asked, given) in [
        ("none", "none"),
        ("all", "a.test,*.b.test:8443,c.test"),
        ("a.test", "a.test"),
        ("a.test:443", "a.test:443"),
        ("x.b.test:8443", "x.b.test:8443"),
        ("*.b.test:8443", "*.b.test:8443"),
        ("*.x.b.test:8443", "*.x.b.test:8443"),
    ] {
        assert_eq!(
            network(asked).within(&ceiling),
            Ok(network(given)),
            "{asked}"
        );
    }
    for asked in [
        "d.test",
        "a.test:22",
        "*.a.test",
        "x.b.test",
        "b.test:8443",
        "*.test",
        "a.test,d.test",
    ] {
        assert!(network(asked).within(&ceiling).is_err(), "{asked}");
        assert!(network(asked).within(&Network::None).is_err(), "{asked}");
        assert_eq!(network(asked).within(&Network::All), Ok(network(asked)));
    }
    assert_eq!(Network::All.within(&Network::None), Ok(Network::None));
}

fn unescaped(text: &str) -> String {
    if let Some((count, letter)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}'))
        && let Ok(count) = count.parse()
    {
        return letter.repeat(count);
    }
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        let code =
            |digits: String| char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap();
        out.push(match rest.next() {
            Some('0') => '\0',
            Some('r') => '\r',
            Some('n') => '\n',
            Some('t') => '\t',
            Some('x') => code(rest.by_ref().take(2).collect()),
            Some('u') => code(
                rest.by_ref()
                    .skip(1)
                    .take_while(|char| *char != '}')
                    .collect(),
            ),
            other => other.expect("a letter after the backslash"),
        });
    }
    out
}

#[test]
fn a_url_grants_its_host_and_is_told_apart_if_it_has_a_path() {
    for (url, host, with_path) in [
        ("https://api.example.com/v1/x?y=1", "api.example.com", true),
        ("HTTPS://api.example.com", "api.example.com", false),
        ("http://api.example.com/", "api.example.com", false),
        (
            "https://api.example.com:8443/x",
            "api.example.com:8443",
            true,
        ),
        ("https://*.example.com/", "*.example.com", false),
        ("https://[2001:db8::9]/x#y", "[2001:db8::9]", true),
    ] {
        let network = Network::parse(url).expect(url);
        assert_eq!(network.to_string(), host);
        assert_eq!(
            network.with_paths().count(),
            usize::from(with_path),
            "{url}"
        );
    }
    for url in [
        "https://",
        "https:///x",
        "https://user@evil.test/",
        "https://allowed.test@evil.test/",
        "https://user:443@evil.test",
        "https://allowed.test\\@evil.test/",
        "https:\\\\evil.test",
        "https://allowed.test\u{0}/",
        "https://allowed.test%2fevil.test/",
        "ftp://allowed.test/",
        "https://https://allowed.test",
        "file:///etc",
    ] {
        assert!(Network::parse(url).is_err(), "{url}");
    }
    // An owner who bounds others by a path would bound nothing.
    let bounds = |url: &str| Network::parse(url).and_then(Network::as_ceiling);
    assert_eq!(
        bounds("https://a.test/x"),
        Err(BadGrant::Path("a.test".to_owned()))
    );
    assert_eq!(bounds("https://a.test/").unwrap().to_string(), "a.test");
    // Where hosts are not granted but compared, a URL is none.
    assert!(Pattern::parse("https://api.example.com/").is_err());
    assert!(Target::parse("https://api.example.com/", Some(443)).is_err());
}
