console.log(Object.keys(globalThis), typeof require, typeof exports, this === module.exports, this === exports);
