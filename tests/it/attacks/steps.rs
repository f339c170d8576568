//! The cases that are steps in words and need no more than the command line.

use std::fs;
use std::time::Duration;

use super::answer::Answer;
use super::canary::Canaries;
use super::case::Case;
use super::pass::{Pass, Run};
use super::verdict::{self, Before};

const LIMIT: Duration = Duration::from_secs(60);

/// Carries a case out; the strings name what does not hold, the text is the last output.
pub fn carry_out(
    case: &Case,
    pass: &Pass,
    before: &Before,
    canaries: &Canaries,
) -> (Vec<String>, String) {
    let mut story = Story {
        pass,
        before,
        canaries,
        failed: Vec::new(),
        output: String::new(),
    };
    match case.short() {
        "FSE-09" => story.hostile_places(),
        "LEK-07" => story.secrets_in_arguments_and_errors(),
        "XRN-01" => story.leftovers(),
        "XRN-03" => story.tampering_in_the_background(),
        other => story
            .failed
            .push(format!("no steps are written for {other}")),
    }
    (story.failed, story.output)
}

struct Story<'a> {
    pass: &'a Pass,
    before: &'a Before,
    canaries: &'a Canaries,
    failed: Vec<String>,
    output: String,
}

impl Story<'_> {
    /// FSE-09. There is no option for a working directory; a file's place in the cell
    /// is the one path the caller can choose.
    fn hostile_places(&mut self) {
        let file = self.pass.input().display().to_string();
        let long = "a".repeat(5000);
        let places = [
            "/proc/self/fd/3",
            "/proc/self/fd/7/../../..",
            "/proc/1/cwd",
            "/",
            ".",
            "..",
            "../../..",
            "/workspace/../../etc",
            "/etc/passwd",
            "a/../../x",
            "main.sh/x",
            &long,
        ];
        let shadow = fs::read_to_string("/etc/shadow").unwrap_or_default();
        let line = shadow.lines().next().unwrap_or("root:");
        for place in places {
            let code = "ls -la; pwd; cat ../../../etc/shadow";
            let answer = self.call(&[
                "-c",
                code,
                "--language=bash",
                "--json",
                &format!("--file={file}:{place}"),
            ]);
            let text = String::from_utf8_lossy(&answer.stdout);
            let inside = text.contains("/workspace\\n") || text.contains("/workspace\n");
            self.holds(
                answer.code == Some(2) || inside,
                &format!("`{place:.40}` is refused or inside"),
            );
            self.holds(
                !text.contains(line),
                &format!("`{place:.40}` never gives a host listing"),
            );
        }
    }

    /// LEK-07. Each error path, with a secret in the environment and a word in the
    /// server's arguments; the checks that follow any answer look for both.
    fn secrets_in_arguments_and_errors(&mut self) {
        let code = "import glob,subprocess\nfor p in glob.glob('/proc/*/cmdline'):\n    print(open(p,'rb').read())\n\
                    print(subprocess.run(['ps','aux'],capture_output=True).stdout if __import__('shutil').which('ps') else '')\n";
        let answer = self.pass.run(&python(code));
        self.note(&answer);
        self.holds(
            answer.code == Some(0),
            "the program that reads every cmdline runs",
        );

        let hidden = format!("--file={}:in.txt", self.pass.hidden_input().display());
        let wrong: [&[&str]; 16] = [
            &["-c", "1", "--language=no-such-language"],
            &["-c", "1", "--language=../../x"],
            &["-c", "1", "--language="],
            &["-c", "", "--language=python"],
            &["-c", "print(", "--language=python"],
            &["-c", "import nothing_of_the_kind", "--language=python"],
            &["-c", "1/0", "--language=python"],
            &["-c", "raise SystemExit('x')", "--language=python"],
            &["-c", "import os; os.abort()", "--language=python"],
            &[
                "-c",
                "while True: pass",
                "--language=python",
                "--timeout=300ms",
            ],
            &["-c", "exec ./missing", "--language=bash"],
            &["-c", "let x = ;", "--language=javascript"],
            &["-c", "1", "--language=python", "--timeout=soon"],
            &["-c", "1", "--language=python", "--memory=much"],
            &["-c", "1", "--language=python", "--no-such-option"],
            &["no/such/file.py"],
        ];
        for arguments in wrong {
            for form in [&[][..], &["--json"][..]] {
                let arguments = [arguments, form, &[hidden.as_str()]].concat();
                let answer = self.call(&arguments);
                self.holds(
                    answer.code.is_some_and(|code| code != 0 && code != 101),
                    "it fails, and says how",
                );
                let both = [answer.stdout, answer.stderr].concat();
                let text = String::from_utf8_lossy(&both);
                let own = self.pass.binary().with_file_name("");
                self.holds(
                    !text.contains(&*own.to_string_lossy()),
                    "no path of the server in an answer",
                );
            }
        }
    }

    /// XRN-01. One run writes wherever it can, the next looks there.
    fn leftovers(&mut self) {
        let places = "/tmp /var/tmp /dev/shm /workspace /workspace/.home /run /var/lib . $HOME";
        let write = format!(
            "for d in {places}; do echo sbx-marker > $d/sbx-marker && echo wrote; done 2>/dev/null\n\
             echo sbx-marker >> ~/.bashrc; echo done\n"
        );
        let look = format!(
            "for d in {places}; do [ -e $d/sbx-marker ] && echo BREACH $d; done\n\
             grep -q sbx-marker ~/.bashrc 2>/dev/null && echo BREACH bashrc; echo SAFE\n"
        );
        let first = self.pass.run(&bash(&write));
        self.note(&first);
        self.holds(
            stdout(&first).contains("wrote"),
            "the first run could write somewhere",
        );
        let second = self.pass.run(&bash(&look));
        self.note(&second);
        self.holds(stdout(&second) == "SAFE\n", "run 2 finds nothing");
    }

    /// XRN-03. What the first run starts in the background would spoil the second.
    fn tampering_in_the_background(&mut self) {
        let tamper = "import os,time,glob,signal\n\
            if os.fork()==0:\n    os.setsid()\n    while True:\n        \
            for p in glob.glob('/proc/[0-9]*'):\n            \
            try:\n                if int(p[6:])!=os.getpid(): os.kill(int(p[6:]),signal.SIGSTOP); open(p+'/fd/1','w').write('BREACH')\n            \
            except (OSError,ValueError): pass\n        \
            for n in ('main.py','/workspace/main.py'):\n            \
            try: open(n,'w').write('print(\"BREACH\")')\n            except OSError: pass\n        \
            time.sleep(.05)\nprint('started')\n";
        let first = self.pass.run(&python(tamper));
        self.note(&first);
        let second = self.pass.run(&python(
            "import time\nfor i in range(10):\n    print(i)\n    time.sleep(.05)\n",
        ));
        self.note(&second);
        self.holds(
            stdout(&second) == "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "run 2's output is exactly its own",
        );
    }

    fn call(&mut self, arguments: &[&str]) -> Answer {
        let owned: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let answer = self.pass.call(&owned, LIMIT);
        self.note(&answer);
        answer
    }

    /// What must hold after every answer.
    fn note(&mut self, answer: &Answer) {
        self.output = answer.shown();
        self.failed.extend(verdict::aftermath(
            answer,
            self.pass,
            self.before,
            self.canaries,
        ));
    }

    fn holds(&mut self, condition: bool, sentence: &str) {
        if !condition {
            self.failed.push(format!("{sentence} ({})", self.output));
        }
    }
}

fn python(code: &str) -> Run {
    Run {
        language: "python",
        code: code.to_owned(),
        wall: Duration::from_secs(5),
        files: Vec::new(),
    }
}

fn bash(code: &str) -> Run {
    Run {
        language: "bash",
        ..python(code)
    }
}

fn stdout(answer: &Answer) -> String {
    answer
        .json()
        .and_then(|result| result["stdout"].as_str().map(str::to_owned))
        .unwrap_or_default()
}
