process.kill(process.pid, "SIGTERM");
setTimeout(() => {}, 5000);
