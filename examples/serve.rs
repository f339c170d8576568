//! An MCP server inside a program of your own. `cargo run --example serve` prints what a client needs, and serves until its input ends.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use hotcell::http::{Names, Settings, Token};
use hotcell::mcp::{Catalog, CodeRunner, Identity, Server};
use hotcell::service::{self, Service};

fn main() -> ExitCode {
    // Sandboxes are made by this same program, started again.
    if let Some(code) = hotcell::hook() {
        return code;
    }
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let service = Arc::new(Service::new(service::Settings::default()));
    let mut catalog = Catalog::default();
    catalog.add_tool(CodeRunner(service));
    let identity = Identity {
        name: "mine".to_owned(),
        title: "Mine".to_owned(),
        instructions: None,
    };
    let token = Token::random();
    let authorization = format!("Bearer {}", token.reveal());
    let settings = Settings {
        token: Some(token),
        names: Names::default(),
        sessions: true,
        page: false,
    };
    // Port 0: any that is free.
    let address = ([127, 0, 0, 1], 0).into();
    let serving = hotcell::serve(address, settings, Server::new(identity, catalog))?;
    eprintln!(
        "port {}: {{\"url\": \"{}\", \"headers\": {{\"Authorization\": \"{authorization}\"}}}}",
        serving.port(),
        serving.url()
    );
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
