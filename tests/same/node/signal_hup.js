process.kill(process.pid, "SIGHUP");
setTimeout(() => {}, 5000);
