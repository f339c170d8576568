const fs = require("fs");
fs.writeFileSync("f", "x");
console.log(fs.readdirSync(".").sort(), (fs.statSync("f").mode & 0o777).toString(8), fs.statSync("main.js").isFile());
