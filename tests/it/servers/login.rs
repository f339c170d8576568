//! A login to a server at an address: with a browser, once, and no program ever sees what came of it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use super::remote::Web;
use super::run;
use crate::support::{Running, anyone};

const CONFIG: &str = "home/.config/hotcell/config.toml";

/// What a browser does: asks for an address of this machine; the answer.
fn browse(address: &str) -> String {
    let rest = address.strip_prefix("http://").expect("an address");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("a connection");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_login_is_kept_for_its_owner_and_renewed_and_no_program_sees_it() {
    let Some(hotcell) = anyone() else { return };
    let web = Web::start(&hotcell, "home/web");
    let config = format!(
        "[servers.web]\nurl = 'http://127.0.0.1:{}/guarded'\n",
        web.port
    );
    hotcell.write(CONFIG, config);
    let code = "print(web.say(text='in'), 'issued-' in str(web.headers()), '(hidden)' in str(web.headers()))";
    let before = run(&hotcell, &["-l", "python", "-c", code]);
    let why = "it wants a login (`hotcell servers login web`)";
    assert!(before.to_string().contains(why), "{before}");

    let mut login = Running::start(hotcell.command().args(["servers", "login", "web"]));
    let said = login.stderr.until("waiting for the browser");
    let address = said.lines().find(|line| line.starts_with("http://"));
    let redirect = browse(address.expect("an address"));
    let back = redirect
        .lines()
        .find_map(|line| line.strip_prefix("Location: "));
    let back = back.expect("a redirect").trim().to_owned();
    // Others who come by are not the browser.
    let port = back.split('/').nth(2).expect("a host");
    assert!(browse(&format!("http://{port}/favicon.ico")).starts_with("HTTP/1.1 404"));
    assert!(browse(&back).contains("You are logged in."));
    let done = login.finish();
    assert_eq!(done.code, Some(0), "{}", done.err());
    assert!(!done.err().contains("issued-"), "{}", done.err());

    let result = run(&hotcell, &["-l", "python", "-c", code]);
    assert_eq!(result["stdout"], "in False True\n", "{result}");
    assert!(!result.to_string().contains("issued-"), "{result}");
    let grants: Vec<String> = web
        .log()
        .lines()
        .filter(|it| it.starts_with("grant"))
        .map(str::to_owned)
        .collect();
    assert_eq!(grants, ["grant authorization_code", "grant refresh_token"]);
    let folder = hotcell.place("home/.local/state/hotcell/servers");
    let files = fs::read_dir(folder).expect("the folder").flatten();
    let token = files
        .map(|it| it.path())
        .find(|it| it.extension().is_some_and(|it| it == "token"));
    let token = token.expect("the tokens");
    assert_eq!(
        fs::metadata(&token).expect("it").permissions().mode() & 0o777,
        0o600
    );
    assert!(
        fs::read_to_string(token)
            .expect("it")
            .contains("issued-access-1")
    );
}
