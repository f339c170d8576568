// From a callback of a file, since at the top level a timer and an immediate race.
require("fs").stat(".", () => {
  setTimeout(() => console.log("timeout"), 0);
  setImmediate(() => console.log("immediate"));
  process.nextTick(() => console.log("tick"));
  Promise.resolve().then(() => console.log("micro"));
  queueMicrotask(() => console.log("micro 2"));
  console.log("sync");
});
