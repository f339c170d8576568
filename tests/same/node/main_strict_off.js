undeclared = 5;
console.log(globalThis.undeclared, (function () { return this === globalThis; })());
