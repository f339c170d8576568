function outer() { inner(); }
function inner() { throw new Error("deep"); }
outer();
