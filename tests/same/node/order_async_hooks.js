const { AsyncLocalStorage, executionAsyncId } = require("async_hooks");
const s = new AsyncLocalStorage();
s.run(5, () => setTimeout(() => console.log(s.getStore()), 1));
console.log(executionAsyncId(), s.getStore());
