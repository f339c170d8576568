// stdin: "line 1\nline 2"
console.log(JSON.stringify(require("fs").readFileSync(0, "utf8")));
