// files: {"data.json": "{\"a\": [1, 2]}"}
console.log(require("./data.json"));
