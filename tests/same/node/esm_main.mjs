import { basename } from "node:path";
console.log(import.meta.url, basename(import.meta.url), import.meta.dirname ?? "none", typeof module);
export const x = 1;
