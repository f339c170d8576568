console.table([{ a: 1, b: 2 }]);
console.group("g"); console.info("in"); console.groupEnd();
console.warn("w"); console.count(); console.count(); console.dir({ a: { b: { c: { d: 1 } } } }); console.assert(false, "asserted");
