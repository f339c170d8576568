function f() { console.trace("here"); }
f();
