console.log(require("module").builtinModules.length > 30, process.moduleLoadList.length > 10, typeof process.binding);
