class A { #p = 1; x = [1, , 3]; }
console.log(new A(), new Map([[1, { a: 2 }]]), Symbol("s"), 10n, -0, [undefined, null], () => {}, new Error("e").message);
