console.log(require("child_process").execFileSync(process.execPath, ["-p", "process.argv.length + ' ' + process.cwd()"]).toString());
