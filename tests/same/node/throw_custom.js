class MyError extends Error { constructor(m) { super(m); this.name = "MyError"; this.extra = 1; } }
throw new MyError("mine");
