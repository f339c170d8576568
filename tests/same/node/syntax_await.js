// A CommonJS program has no await at its top level, unless node takes it for a module.
const x = await 5;
console.log(x);
