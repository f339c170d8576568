// files: {"lib.js": "exports.n = 42; console.log(module.parent === require.main, __filename);"}
console.log(require("./lib").n, require.cache[require.resolve("./lib")].loaded);
