require("child_process").spawn("no-such-program").on("error", (e) => console.log(e.code, e.syscall));
