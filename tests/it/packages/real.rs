//! The real registries: what programs really import, and every row of our table.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use super::{installer, npm};
use crate::raw;
use crate::support::{PATH, has, ordinary, skip};

/// Rows of `packages/pypi.csv` that name a package.
const TABLE: &str = include_str!("../../../packages/pypi.csv");

#[test]
fn the_libraries_that_programs_use_most_are_installed_and_work() {
    let Some(hotcell) = ordinary().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let code = r#"
import numpy as np, pandas as pd, requests, pydantic
import lxml.etree, matplotlib
from sklearn.linear_model import LinearRegression
matplotlib.use('Agg')
import matplotlib.pyplot as plt
frame = pd.DataFrame({'x': [1, 2, 3], 'y': [2, 4, 6]})
print(frame[frame.x > 1].y.sum(), LinearRegression().fit(frame[['x']], frame.y).coef_.round(3), np.arange(4).sum())
print(lxml.etree.fromstring('<a><b/></a>').tag, requests.Request('GET', 'http://x').method)
class Point(pydantic.BaseModel):
    x: int
print(Point(x='3'))
plt.plot([1, 2]); plt.savefig('plot.png')
"#;
    let mut command = hotcell.command();
    let path = format!("{}/bin:{PATH}", installer().expect("it is there").display());
    command
        .env("PATH", path)
        .args(["run", "-l", "python", "--timeout", "120", "-c", code]);
    // As long as it takes: 150 MB over a line that may be slow.
    let output = command.output().expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, "10 [2.] 6\na GET\nx=3\n", "{said}");
    assert!(said.contains("installed "), "{said}");
}

#[test]
fn packages_of_npm_are_imported_and_required() {
    let Some(hotcell) = ordinary().filter(|_| has("node") && has("npm")) else {
        return;
    };
    let code = "import { chunk } from 'lodash-es'; import { z } from 'zod'; import { format } from 'date-fns';\n\
        import fs from 'node:fs'; fs.writeFileSync('a', 'b');\n\
        console.log(JSON.stringify(chunk([1, 2, 3], 2)), z.string().parse('x'), format(new Date(0), 'yyyy'), fs.readFileSync('a', 'utf8'))";
    let run = |code: &str| {
        let mut command = hotcell.command();
        let output = command
            .args(["run", "-l", "js", "-c", code])
            .output()
            .expect("it can be started");
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (printed, said) = run(code);
    assert_eq!(printed, "[[1,2],[3]] x 1970 b\n", "{said}");
    let (printed, said) = run(
        "console.log(require('lodash').chunk([1, 2], 1).length, require('path').basename('/a/b'))",
    );
    assert_eq!(printed, "2 b\n", "{said}");
    // As deno names them.
    let (printed, said) = run(
        "import { chunk } from 'npm:lodash-es@4';\nconst { default: get } = await import('npm:lodash-es@4/get.js');\nconsole.log(chunk([1, 2], 1).length, get({ a: 7 }, 'a'))",
    );
    assert_eq!(printed, "2 7\n", "{said}");
}

#[test]
fn packages_of_npm_work_in_the_engine_where_no_node_is() {
    let Some(hotcell) = ordinary().filter(|_| npm::installer().is_some()) else {
        return;
    };
    let bin = npm::installer().expect("it is there").join("bin");
    let imported = "import { chunk } from 'lodash-es'; import { z } from 'npm:zod'; import { format } from 'date-fns'; import ms from 'ms';\n\
        console.log(JSON.stringify(chunk([1, 2, 3], 2)), z.object({ a: z.string() }).parse({ a: 'x' }).a, format(new Date(0), 'yyyy'), ms('1h'))";
    let required = "const { z } = require('zod'); const { format } = require('date-fns'); const { chunk } = require('lodash');\n\
        console.log(JSON.stringify(chunk([1, 2, 3], 2)), z.string().safeParse(1).success, format(new Date(0), 'yyyy'), require('ms')('1h'))";
    for (code, says) in [
        (imported, "[[1,2],[3]] x 1970 3600000\n"),
        (required, "[[1,2],[3]] false 1970 3600000\n"),
    ] {
        for language in ["javascript", "typescript"] {
            let mut command = hotcell.command();
            command
                .env("PATH", &bin)
                .args(["run", "-l", language, "--engine", "embedded", "-c", code]);
            let output = command.output().expect("it can be started");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                says,
                "{language}: {said}"
            );
        }
    }
}

#[test]
fn cells_that_wait_already_see_what_is_installed_later() {
    let Some(hotcell) = ordinary().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let path = format!("{}/bin:{PATH}", installer().expect("it is there").display());
    let home = hotcell.home();
    let uid = hotcell.uid;
    let mut client = raw::Stdio::open_as(&[], |command, _| {
        use std::os::unix::process::CommandExt;
        command
            .env("HOME", &home)
            .env("TMPDIR", hotcell.temporary())
            .env("PATH", &path)
            .current_dir(&home);
        if rustix::process::getuid().is_root() {
            command.uid(uid).gid(uid);
        }
    });
    let mut run = |code: &str| {
        raw::record(&client.call("run", json!({ "code": code, "language": "python" })))
    };
    // The pool is full before the package is there.
    for _ in 0..8 {
        assert_eq!(run("print(1)")["stdout"], "1\n");
    }
    let code = "import humanize, sys, os\nprint(humanize.intcomma(1000), sys.path[1] == os.environ['PYTHONPATH'])";
    let first = run(code);
    assert_eq!(first["stdout"], "1,000 True\n", "{first}");
    assert_eq!(first["packages"]["cached"], false);
    for _ in 0..8 {
        let again = run(code);
        assert_eq!(
            (&again["stdout"], &again["packages"]["cached"]),
            (&"1,000 True\n".into(), &true.into()),
            "{again}"
        );
    }
    assert_eq!(
        run("import os; print(os.environ.get('PYTHONPATH'))")["stdout"],
        "None\n"
    );
}

#[test]
fn every_row_of_the_table_is_a_package_with_files() {
    let rows: Vec<&str> = TABLE
        .lines()
        .filter_map(|line| line.split_once(','))
        .map(|row| row.1)
        .filter(|it| !it.is_empty())
        .collect();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let base = std::env::var("PIP_INDEX_URL")
        .unwrap_or_else(|_| hotcell::runtimes::registry_base(hotcell::runtimes::Registry::Pypi));
    let client = reqwest::blocking::Client::new();
    let page = |name: &str| {
        client
            .get(format!("{base}/{name}/"))
            .send()
            .and_then(|it| Ok((it.status().as_u16(), it.text()?)))
    };
    if let Err(error) = page("pip") {
        return skip(&format!("no package index: {error}"));
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(name) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = name.to_ascii_lowercase().replace(['_', '.'], "-");
                    // A line that breaks once says nothing about a package.
                    let answer = page(&name).or_else(|_| page(&name));
                    let good = matches!(&answer, Ok((200, text)) if text.contains("<a "));
                    if !good {
                        wrong
                            .lock()
                            .expect("no panic")
                            .push(format!("{name}: {:?}", answer.map(|it| it.0)));
                    }
                }
            });
        }
    });
    assert_eq!(*wrong.lock().expect("no panic"), Vec::<String>::new());
    assert!(rows.len() >= 300);
}
