// Time starts with the program, not with a worker that waited.
console.log(performance.now() < 5000, process.uptime() < 5, performance.timeOrigin > 1e12);
