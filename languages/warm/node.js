// What a pre-started node does once: all that happens between the first look at a program and its first line of output.
try {
    const { stdout, stderr } = process;
    stdout.write('');
    const nowhere = { write() {}, once() {}, removeListener() {} };
    new console.Console({ stdout: nowhere, stderr: nowhere }).log('%s', 1, { a: [1, 'x'] });
    const { getBuiltinModule } = process;
    const fs = getBuiltinModule('fs'), { Module } = getBuiltinModule('module');
    fs.mkdirSync('/tmp/w');
    fs.writeFileSync('/tmp/w/main.js', '1');
    Module._load('/tmp/w/main.js', null, false);
    fs.rmSync('/tmp/w', { recursive: true });
    delete Module._cache['/tmp/w/main.js'];
    for (const key of Object.keys(Module._pathCache)) delete Module._pathCache[key];
    const vm = getBuiltinModule('vm');
    // A name of scripts and no property of the global object: nobody finds it who does not know it.
    try { vm.runInThisContext('let $hotcell') } catch {}
    const binding = vm.runInThisContext('(function (require, prepared) {' + {binding} + '\n})', { filename: '/workspace/.home/.hotcell/servers.cjs' });
    binding(getBuiltinModule, (prepared) => $hotcell = prepared);
    $hotcell.rehearse();
} catch {}
