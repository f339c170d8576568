const net = require("net");
const server = net.createServer((c) => c.end("hello")).listen("/tmp/s", () => net.connect("/tmp/s").on("data", (d) => console.log(d.toString())).on("close", () => server.close()));
