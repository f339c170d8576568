//! Programs for a node that cannot read them: types and the `npm:` of imports are taken
//! away, and node is started on what is left in our place. Or it is left for a node that has started already.

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::modules::named_file;
use super::{Failed, Program, not_a_program, ours, packages, path_of, value};
use crate::script::{self, Dialect};

/// What node is started on. Beside the program, so that its relative imports are right.
const WRITTEN: &str = ".main";

/// Where what is not started is left, in the workspace.
const LEFT: &str = ".build";

/// The first argument is node's own program; without it nothing is started.
pub fn for_node(program: &Program) -> Result<u8, Failed> {
    let main = path_of(program)?;
    let mut files = Files::default();
    let source = value::wanted(program.text()?, Dialect::of(&main));
    let written = files.translate(&main, &source, WRITTEN)?;
    let [node, args @ ..] = program.args.as_slice() else {
        return files.leave(&main).map(|()| 0);
    };
    let mut command = Command::new(node);
    command.arg("--enable-source-maps").arg(&written).args(args);
    // Returns only if that failed.
    Err(ours(format!("{node}: {}", command.exec())))
}

/// Which files were translated, and what became of each.
#[derive(Default)]
struct Files(HashMap<PathBuf, PathBuf>);

impl Files {
    /// Leaves what was written for whoever starts `main`, each below the folder as it is beside the program.
    fn leave(&self, main: &Path) -> Result<(), Failed> {
        let beside = main.parent().unwrap_or(Path::new(""));
        for written in self.0.values() {
            let fail = |error| ours(format!("{}: {error}", written.display()));
            let inner = written.strip_prefix(beside);
            let inner = inner.map_err(|_| ours(format!("{} is elsewhere", written.display())))?;
            let place = beside.join(LEFT).join(inner);
            fs::create_dir_all(place.parent().unwrap_or(beside)).map_err(fail)?;
            fs::rename(written, &place).map_err(fail)?;
        }
        Ok(())
    }

    /// Writes a file as node can read it, and those that it imports and node cannot read; `name` is what it is called then.
    fn translate(&mut self, path: &Path, source: &str, name: &str) -> Result<PathBuf, Failed> {
        let dialect = Dialect::of(path);
        let source = without_npm(source, dialect);
        let read = |source: &str| {
            let read = script::read(path, source, dialect);
            read.map_err(|broken| not_a_program(path, source, &broken))
        };
        let ending = if read(&source)?.is_module {
            "mjs"
        } else {
            "cjs"
        };
        let written = path.with_file_name(format!("{name}.{ending}"));
        // Before what it imports, which may import it in turn.
        self.0.insert(path.to_owned(), written.clone());
        let script = read(&self.renamed(path, &source, dialect)?)?;
        // With the map in it node names places of the source.
        let code = match script.map {
            Some(map) => format!("{}\n//# sourceMappingURL={map}\n", script.code),
            None => script.code,
        };
        fs::write(&written, code)
            .map_err(|error| ours(format!("{}: {error}", written.display())))?;
        Ok(written)
    }

    /// A source whose imports of such files name what became of them.
    fn renamed(&mut self, path: &Path, source: &str, dialect: Dialect) -> Result<String, Failed> {
        let mut renamed = source.to_owned();
        let mut places = script::imports(source, dialect);
        places.sort_by_key(|place| std::cmp::Reverse(place.start));
        for place in places {
            let text = source.get(place.clone()).unwrap_or_default();
            let inside = text
                .get(1..text.len().saturating_sub(1))
                .unwrap_or_default();
            let folder = path.parent().filter(|_| inside.starts_with('.'));
            let Some(file) = folder.and_then(|folder| named_file(&folder.join(inside))) else {
                continue;
            };
            let ending = file.extension().and_then(|it| it.to_str());
            if !matches!(ending, Some("ts" | "tsx" | "mts" | "cts")) {
                continue;
            }
            let file = file.canonicalize().unwrap_or(file);
            if !self.0.contains_key(&file) {
                let text = fs::read_to_string(&file)
                    .map_err(|error| ours(format!("{}: {error}", file.display())))?;
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                self.translate(&file, &text, &format!(".{name}"))?;
            }
            if let Some(written) = self.0.get(&file).and_then(|it| it.to_str()) {
                renamed.replace_range(place, &format!("{written:?}"));
            }
        }
        Ok(renamed)
    }
}

/// The same with packages named as node names them. Everything else stays where it is.
fn without_npm(source: &str, dialect: Dialect) -> String {
    let mut written = source.to_owned();
    if !source.contains("npm:") {
        return written;
    }
    for place in script::imports(source, dialect) {
        let text = source.get(place.clone()).unwrap_or_default();
        let quote = text.chars().next().unwrap_or_default();
        let inside = text.get(1..text.len().saturating_sub(1));
        if let Some(name) = inside.and_then(packages::bare) {
            let short = format!("{quote}{name}{quote}");
            let spaces = " ".repeat(text.len() - short.len());
            written.replace_range(place, &(short + &spaces));
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_as_node_names_them_and_nothing_else_moves() {
        let source = "import a, { type B } from 'npm:@s/a@^1.2/b';\nexport * from \"npm:c\";\n\
            const d: string = 'npm:d'; import fs from 'node:fs'; await import('npm:é@1'); import(d);\n";
        let written = without_npm(source, Dialect::TypeScript);
        assert_eq!(
            written,
            "import a, { type B } from '@s/a/b'         ;\nexport * from \"c\"    ;\n\
            const d: string = 'npm:d'; import fs from 'node:fs'; await import('é'      ); import(d);\n"
        );
        for broken in ["import 'npm:", "npm:", "import(npm:)", "import `npm:a`"] {
            assert_eq!(without_npm(broken, Dialect::JavaScript), broken);
        }
        assert_eq!(
            without_npm(
                "import 'npm:b'; const a = <string>b; await import('npm:a')",
                Dialect::TypeScript
            ),
            "import 'b'    ; const a = <string>b; await import('a'    )"
        );
    }
}
