const r = require("child_process").spawnSync("sh", ["-c", "echo out; echo err >&2; exit 3"]);
console.log(r.status, r.stdout.toString(), r.stderr.toString(), r.signal);
