console.log(process.kill(process.pid, 0));
