// files: {"lib.mjs": "export default 42; export const url = import.meta.url;"}
import("./lib.mjs").then((lib) => console.log(lib.default, lib.url));
