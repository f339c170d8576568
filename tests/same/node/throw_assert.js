require("assert").deepStrictEqual({ a: 1 }, { a: 2 });
