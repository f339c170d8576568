// stdin: "first\nsecond\n"
const rl = require("readline").createInterface({ input: process.stdin });
rl.on("line", (line) => console.log("line:", line)).on("close", () => console.log("closed"));
