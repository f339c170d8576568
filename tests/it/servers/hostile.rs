//! A program that does not keep to the rules of its line.

use serde_json::json;

use super::{configure, log, serve, structured};
use crate::support::everyone;

/// Each is sent as it is, and what comes back is shown in short.
const LIES: &str = r#"
import json, socket, threading
def say(message, close=False):
    line = socket.create_connection(("127.0.0.1", 3128), 10)
    try:
        line.sendall(message)
        if close:
            line.shutdown(socket.SHUT_WR)
        answer = line.makefile("rb").read()
    except OSError as error:
        return type(error).__name__
    return answer.partition(b"\r\n")[0].decode() + " " + answer.partition(b"\r\n\r\n")[2].decode()[:90]
def post(body, length=None):
    return say(b"POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(body) if length is None else length, body))
print(say(b"\x00\xff" * 50, True))
print(say(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
print(say(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\nx\r\n0\r\n\r\n"))
print(post(b"", 1 << 40))
print(post(b"nonsense"), post(b"[]"), post(b'{"server": 5}'), post(b'{"more": 1}'), sep="\n")
print(post(b'{"server": "clock", "tool": "text", "arguments": []}'))
print(post(b'{"server": "clock", "tool": "echo-back", "arguments": {"value": ' + b"[" * 500000 + b"]" * 500000 + b"}}"))
print(post(b'{"server": "clock", "tool": "echo-back",\n "arguments": {"value":\n [1]}}\n'))
print(post(b'{"ask": "steal"}'), post(b'{"ask": "command", "words": 5}'), post(b'{"ask": "command", "words": ["call", "-r"]}')[:24], sep="\n")
print(post(b'{"ask": "read", "server": "clock", "about": "x"}'), post(b'{"ask": "prompts", "server": "other"}'), sep="\n")
print(say(b"POST http://clock/ HTTP/1.1\r\nHost: clock\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"))
print(say(b"CONNECT clock:80 HTTP/1.1\r\nHost: clock\r\n\r\n", True))
# Lines that are opened and left.
held = [socket.create_connection(("127.0.0.1", 3128), 10) for _ in range(20)]
for line in held:
    line.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n{")
print(clock.text(text="still here"))
"#;

#[test]
fn a_program_that_lies_at_its_line_costs_only_itself() {
    for hotcell in everyone() {
        configure(&hotcell);
        let mut client = serve(&hotcell);
        let result = client.run(json!({ "language": "python", "code": LIES }));
        let said = structured(&result)["stdout"].as_str().unwrap_or_default();
        let error = |why: &str| {
            format!("HTTP/1.0 200 OK {{\"error\":{{\"kind\":\"arguments\",\"message\":\"{why}")
        };
        let refused = "HTTP/1.1 405 Method Not Allowed {\"error\":{\"kind\":\"arguments\",\"message\":\"a call is a POST";
        let starts = [
            "HTTP/1.1 400 Bad Request ".to_owned(),
            refused.to_owned(),
            error("a call may have at most 32 MiB").replace("1.0", "1.1"),
            error("a call may have at most 32 MiB"),
            error("this is no call: "),
            error("this is no call: "),
            error("this is no call: "),
            error("this is no call: "),
            error("this is no call: `arguments` must be an object"),
            error("this is no call: `arguments` are nested too deeply"),
            "HTTP/1.0 200 OK {\"value\":{\"value\":[1]}}".to_owned(),
            error("this is no call: unknown variant `steal`"),
            error("this is no call: "),
            "HTTP/1.0 200 OK 2 0 ".to_owned(),
            "HTTP/1.0 200 OK {\"error\":{\"kind\":\"tool\",\"message\":\"x: unknown\"".to_owned(),
            "HTTP/1.0 200 OK {\"error\":{\"kind\":\"unknown_server\"".to_owned(),
            "HTTP/1.1 200 OK {\"error\":{\"kind\":\"unknown_server\"".to_owned(),
            refused.to_owned(),
            "still here".to_owned(),
        ];
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), starts.len(), "{result}");
        for (line, start) in lines.iter().zip(&starts) {
            let start: String = start.chars().take(100).collect();
            assert!(
                line.starts_with(start.trim_end()),
                "{line}\nis not\n{start}"
            );
        }
        // The server and its other runs are as before.
        let next =
            client.run(json!({ "language": "python", "code": "print(clock.text(text='next'))" }));
        assert_eq!(structured(&next)["stdout"], "next\n", "{next}");
        assert_eq!(log(&hotcell, "clock.log").matches("start").count(), 1);
    }
}

#[test]
fn a_server_that_lies_spoils_its_own_answers_and_no_others() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell);
    let script = hotcell.write("liar.py", include_str!("../../servers/liar.py"));
    let config = hotcell.place("home/.config/hotcell/config.toml");
    let text = std::fs::read_to_string(&config).expect("the configuration");
    let liar = format!("[servers.liar]\ncommand = 'python3'\nargs = [{script:?}]\n");
    hotcell.write("home/.config/hotcell/config.toml", text + &liar);
    let code = r#"
for kind in ["number", "nothing", "neither", "words", "parts", "refusal", "both", "endless"]:
    try:
        print(kind, repr(liar.odd(kind=kind)))
    except ToolError as error:
        print(kind, error.kind, error)
print([mcp.read("liar", at) for at in ("list", "text")], mcp.read("liar", "odd"), mcp.prompts("liar"), len(mcp.resources("liar")))
print(clock.text(text="untouched"))
"#;
    let mut client = serve(&hotcell);
    let result = client.run(json!({ "language": "python", "code": code, "timeout": 60 }));
    let expected = "\
number tool liar.odd: it gave no result
nothing tool liar.odd: it gave no result
neither tool liar.odd: it gave no result
words ''
parts [7, {'type': 'text'}, None]
refusal tool liar.odd: it refused
both tool liar.odd: it refused
endless unavailable liar.odd: the server is not available: it has ended; run `hotcell servers` to see its messages
[[], []] [{'type': 'resource', 'resource': 3}, {'type': 'resource', 'resource': {'text': 4}}, <resource, 0 bytes>, {'type': 'resource', 'resource': {}}] [] 200
untouched
";
    assert_eq!(structured(&result)["stdout"], expected, "{result}");
}
