await f(
