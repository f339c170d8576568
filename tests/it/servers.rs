//! The tools of other MCP servers, called by programs: what a tool says is a value there, what a run was not given it
//! does not reach, and nothing of a server's is seen; witnessed by the server's own log.

mod attacks;
mod command;
mod consent;
mod discovery;
mod hostile;
mod javascript;
mod lifecycle;
mod login;
mod many;
mod policy;
mod python;
mod reach;
mod redact;
pub mod remote;
mod roadmap;
mod saved;
mod tokens;
mod told;
mod values;

use std::fs;

use serde_json::Value;

use crate::mcp::client::Client;
use crate::support::{Hotcell, Running};

pub const KEY: &str = "sesame-open-1234";

/// Two servers, `clock` and `Other Clock`, each with a log of its own.
pub fn configure(hotcell: &Hotcell) {
    let script = hotcell.write("clock.py", include_str!("../servers/clock.py"));
    let mut config = String::new();
    for (name, log) in [("clock", "clock.log"), ("Other Clock", "other.log")] {
        let log = hotcell.write(log, "");
        config += &format!(
            "[servers.{name:?}]\ncommand = 'python3'\nargs = [{script:?}]\nenv = {{ CLOCK_LOG = {log:?}, CLOCK_NAME = 'a plain value' }}\npass = ['OWN_CLOCK_KEY']\n"
        );
    }
    config += "[servers.gone]\ncommand = 'no-such-program'\n";
    hotcell.write("home/.config/hotcell/config.toml", config);
}

/// Two servers that give all that a tool can give, `studio` and `My Studio`.
fn studio(hotcell: &Hotcell) {
    let script = hotcell.write("studio.py", include_str!("../servers/studio.py"));
    let entry = |name| format!("[servers.{name}]\ncommand = 'python3'\nargs = [{script:?}]\n");
    let config = entry("studio") + &entry("'My Studio'");
    hotcell.write("home/.config/hotcell/config.toml", config);
}

fn log(hotcell: &Hotcell, name: &str) -> String {
    fs::read_to_string(hotcell.place(name)).expect("the server's log")
}

fn run(hotcell: &Hotcell, arguments: &[&str]) -> Value {
    let mut command = hotcell.command();
    command
        .env("OWN_CLOCK_KEY", KEY)
        .env("XDG_DATA_HOME", data())
        .args(["run", "--json"])
        .args(arguments);
    Running::start(&mut command).finish().json()
}

/// Where `scripts/test` has brought deno.
fn data() -> String {
    std::env::var("HOTCELL_TEST_DATA").unwrap_or_default()
}

pub fn serve(hotcell: &Hotcell) -> Client {
    let mut command = hotcell.command();
    command.env("OWN_CLOCK_KEY", KEY).arg("serve");
    let mut client = Client::of(command);
    client.begin();
    client
}

fn structured(result: &Value) -> &Value {
    &result["structuredContent"]
}
