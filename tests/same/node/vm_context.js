const vm = require("vm");
console.log(vm.runInNewContext("x + 1", { x: 1 }), vm.runInThisContext("typeof require"), vm.isContext(globalThis));
