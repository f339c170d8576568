const s = require("fs").fstatSync(0);
console.log(s.isFIFO(), s.isCharacterDevice());
