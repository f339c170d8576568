const c = require("child_process").spawn("cat");
c.stdout.on("data", (d) => console.log(d.toString()));
c.on("close", (code, signal) => console.log(code, signal));
c.stdin.end("through cat");
