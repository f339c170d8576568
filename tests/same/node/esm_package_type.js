// files: {"package.json": "{\"type\": \"module\"}", "lib.js": "export const n = 1;"}
import { n } from "./lib.js";
import fs from "node:fs";
console.log(n, import.meta.url, typeof require, this, await Promise.resolve("top-level await"), typeof fs);
