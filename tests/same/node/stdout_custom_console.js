new console.Console(process.stderr).log("to stderr");
