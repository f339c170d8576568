const process = 1, console2 = 2, fs = require("fs");
let vm = 3, path = 4, Module = 5, code = 6;
globalThis.console.log(process, console2, vm, path, Module, code, typeof fs.readFileSync);
