process.on("exit", () => { process.exitCode = 5; });
