#!/usr/bin/env node
console.log("with a shebang");
throw new Error("on line three");
