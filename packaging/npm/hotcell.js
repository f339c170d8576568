#!/usr/bin/env node
// Starts the program of the package for this machine. npm has chosen that among the optional dependencies; nothing is downloaded here.
"use strict";

const { spawn } = require("node:child_process");
const { readFileSync } = require("node:fs");

function find() {
  const name = `hotcell-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/hotcell`);
  } catch {
    console.error(`hotcell: there is no package ${name} beside this one`);
    console.error("hint: hotcell needs Linux on x64 or arm64. There, install it again without `--omit=optional`.");
    process.exit(1);
  }
}

const program = find();
const words = process.argv.slice(2);
// Where node can, the program takes the place of this process.
if (process.execve) {
  try {
    process.execve(program, ["hotcell", ...words], process.env);
  } catch {
    // Then it is started as a child.
  }
}
const child = spawn(program, words, { stdio: "inherit" });

// Ctrl-C of a terminal reaches all processes in its foreground, the program too; passed on it would be a second one, which ends the run.
function isInForeground() {
  try {
    const [, , group, , , foreground] = readFileSync("/proc/self/stat", "utf8").split(") ").pop().split(" ");
    return group === foreground;
  } catch {
    return false;
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !isInForeground()) child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`hotcell: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
