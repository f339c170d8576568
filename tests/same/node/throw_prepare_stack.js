Error.prepareStackTrace = (e, frames) => frames.map((f) => f.getFileName() + ":" + f.getLineNumber()).slice(0, 1);
console.log(new Error("x").stack, Error.stackTraceLimit);
