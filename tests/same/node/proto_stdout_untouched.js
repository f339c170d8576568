console.log(Object.getOwnPropertyNames(process.stdout).filter((n) => !n.startsWith("_")).sort());
