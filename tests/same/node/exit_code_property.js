process.exitCode = 7;
setTimeout(() => console.log("later"), 5);
