// files: {"broken.js": "function f( {"}
require("./broken");
