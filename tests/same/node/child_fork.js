// files: {"child.js": "process.on('message', (m) => { process.send(m * 2); process.disconnect(); });"}
const c = require("child_process").fork("child.js");
c.on("message", (m) => console.log("got", m)).on("exit", (code) => console.log("exit", code));
c.send(21);
