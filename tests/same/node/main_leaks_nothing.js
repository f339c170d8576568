var mine = 1;
console.log(globalThis.mine, Object.getOwnPropertyNames(globalThis).filter((n) => /hotcell|worker_|bootstrap|warm/i.test(n)));
