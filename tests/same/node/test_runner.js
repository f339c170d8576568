const test = require("node:test");
console.log(typeof test, process.env.NODE_TEST_CONTEXT);
