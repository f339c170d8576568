// files: {"node_modules/p/index.js": "module.exports = __dirname;", "node_modules/p/package.json": "{\"name\": \"p\"}"}
console.log(require("p"), require.resolve("p"));
