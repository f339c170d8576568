console.log("1");
process.stdout.write("2\n");
require("fs").writeSync(1, "3\n");
process.stdout.write(Buffer.from("4 \xe9\n", "latin1"));
console.error("e1");
process.stderr.write("e2\n");
