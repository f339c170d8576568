const { Worker, isMainThread, parentPort } = require("worker_threads");
if (isMainThread) new Worker(__filename).on("message", (m) => console.log("from a worker:", m)).on("exit", (c) => console.log("exit", c));
else parentPort.postMessage(6 * 7);
