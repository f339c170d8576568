// The usual listener would print the process's number.
process.removeAllListeners("warning");
process.on("warning", (w) => console.log(w.name, w.message, w.code));
process.emitWarning("careful", { code: "W1" });
