// Time starts with the program, not with a worker that waited.
console.log(performance.now() < 15000, process.uptime() < 15, performance.timeOrigin > 1e12);
