// files: {"lib.cjs": "exports.a = 1; module.exports.b = 2;"}
import lib, { a } from "./lib.cjs";
console.log(lib, a);
