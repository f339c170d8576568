process.kill(process.pid, "SIGINT");
setTimeout(() => {}, 5000);
