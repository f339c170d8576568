const { Worker, isMainThread, threadId } = require("worker_threads");
console.log(isMainThread, threadId);
new Worker("require('worker_threads').parentPort.postMessage(require('worker_threads').workerData + 1)", { eval: true, workerData: 1 }).on("message", console.log);
