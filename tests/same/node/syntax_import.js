import fs from "fs";
console.log(typeof fs.readFileSync);
