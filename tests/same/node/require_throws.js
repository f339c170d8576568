// files: {"bad.js": "throw new Error('while loading');"}
try { require("./bad"); } catch (error) { console.log(error.message, error.stack.split("\n")[1]); }
