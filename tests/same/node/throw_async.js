async function f() { await null; undefined.x; }
f();
