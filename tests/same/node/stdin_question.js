// stdin: "Ada\n"
const rl = require("readline").createInterface({ input: process.stdin, output: process.stdout });
rl.question("name? ", (name) => { console.log(`hello ${name}`); rl.close(); });
