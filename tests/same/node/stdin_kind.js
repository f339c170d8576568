// stdin: "x"
const s = require("fs").fstatSync(0);
console.log(s.isFIFO(), s.isSocket(), s.isCharacterDevice(), process.stdin.constructor.name, process.stdin.fd);
