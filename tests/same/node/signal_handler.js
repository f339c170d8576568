process.on("SIGTERM", (s, n) => { console.log("got", s, n); process.exit(9); });
process.kill(process.pid, "SIGTERM");
setTimeout(() => {}, 5000);
