// args: ["a b"]
console.log(require("fs").readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(1));
