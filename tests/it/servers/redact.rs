//! Personal data of servers: a program has tokens, and servers have the values again; witnessed by the server's own log.

use serde_json::json;

use super::{configure, log, run, serve, structured};
use crate::support::{Hotcell, Running, anyone, everyone};

const CONFIG: &str = "home/.config/hotcell/config.toml";

/// The usual servers, with more for all of them, and for `clock`.
fn configure_with(hotcell: &Hotcell, all: &str, clock: &str) {
    configure(hotcell);
    let text = std::fs::read_to_string(hotcell.place(CONFIG)).expect("the configuration");
    let entry = "[servers.\"clock\"]\n";
    assert!(text.contains(entry), "{text}");
    let text = text.replace(entry, &format!("{entry}{clock}\n"));
    hotcell.write(CONFIG, format!("[servers]\n{all}\n{text}"));
}

const PEOPLE: &str = r#"{"mail": "Ada <ada@example.com>", "phone": "+49 30 1234567", "card": 4111111111111111, "ada@example.com": [1, "4111 1111 1111 1111"]}"#;

#[test]
fn a_program_has_tokens_and_servers_have_the_values_again() {
    for hotcell in everyone() {
        configure_with(&hotcell, "redact = true", "");
        let code = format!(
            r#"
import json
PEOPLE = json.dumps({PEOPLE}).replace("4111111111111111", "41" + "11" * 7).replace("ada@", "ada" + chr(64)).replace("+49 30", "+49" + " 30")
first = clock.echo_back(value=json.loads(PEOPLE))["value"]
print(json.dumps(first))
second = clock.text(text="mail to " + "ada" + chr(64) + "example.com")
print(second == "mail to " + [key for key in first if key.startswith("[email:")][0])
print(clock.text(text=PEOPLE)["phone"] == first["phone"])
print(other_clock.text(text="call " + first["phone"] + " now"))
try:
    clock.wait(seconds=first["mail"])
except ToolError as error:
    print(error)
"#
        );
        let mut client = serve(&hotcell);
        let result = client.run(json!({ "language": "python", "code": code }));
        let said = structured(&result)["stdout"].as_str().unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 5, "{result}");
        assert_eq!(&lines[1..3], ["True", "True"], "{result}");
        assert!(lines[3].starts_with("call [phone:"), "{result}");
        for value in ["ada@", "1234567", "4111"] {
            assert!(!said.contains(value), "{value}: {said}");
        }
        // The server was told the value.
        assert!(log(&hotcell, "other.log").contains("call +49 30 1234567 now"));

        // A later run of the same server has the same token, and can use it.
        let token = lines[3]
            .trim_start_matches("call ")
            .trim_end_matches(" now");
        let code = format!("print(clock.text(text='{token}'))");
        let again = client.run(json!({ "language": "python", "code": code }));
        assert_eq!(
            structured(&again)["stdout"],
            format!("{token}\n"),
            "{again}"
        );
        assert!(log(&hotcell, "clock.log").contains(r#"call text {"text": "+49 30 1234567"}"#));
        // Another process does not know it.
        let other = run(&hotcell, &["-l", "python", "-c", &code]);
        assert_eq!(other["stdout"], format!("{token}\n"), "{other}");
        assert_eq!(log(&hotcell, "clock.log").matches(token).count(), 1);
    }
}

#[test]
fn a_value_goes_only_to_a_server_that_would_not_give_it_back() {
    let Some(hotcell) = anyone() else { return };
    configure_with(&hotcell, "", "redact = ['email']");
    let code = r#"
token = clock.text(text="ada" + chr(64) + "example.com")
print(token.startswith("[email:"), clock.text(text="+49 30 " + "1234567"))
print(other_clock.text(text=token) == token, clock.text(text=token) == token)
"#;
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    assert_eq!(
        result["stdout"], "True +49 30 1234567\nTrue True\n",
        "{result}"
    );
    assert!(!log(&hotcell, "other.log").contains("ada@"));
    assert_eq!(
        log(&hotcell, "clock.log")
            .matches("ada@example.com")
            .count(),
        2
    );
    // Who owns the server sees what it says.
    let mut command = hotcell.command();
    command.args([
        "servers",
        "call",
        "-r",
        "clock.text",
        "text=ada@example.com",
    ]);
    assert_eq!(
        Running::start(&mut command).finish().out(),
        "ada@example.com\n"
    );
    // A word that is none of these is one broken server.
    configure_with(&hotcell, "", "redact = ['names']");
    let result = run(
        &hotcell,
        &["-l", "python", "-c", "print(other_clock.text(text='here'))"],
    );
    assert_eq!(result["stdout"], "here\n", "{result}");
    let listed = Running::start(hotcell.command().args(["servers", "list"])).finish();
    let shown = listed.out() + &listed.err();
    assert!(
        shown.contains("`email`, `phone` and `card` can be redacted"),
        "{shown}"
    );
}
