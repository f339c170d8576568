// What a program has of hotcell: its arguments, what it shows, values that it shares, tools that it may call.
'use strict';

// The program's arguments.
exports.args = process.argv.slice(2);

// Values by name. The calls of a session share them, in every language; a program on its own has them to itself.
exports.vars = {};

// Shows values and pictures beside what is printed, or prints them where nothing can be shown.
exports.display = (...values) => values.forEach((value) => (globalThis.display ?? console.log)(value));

// The upstream servers that the program may call: `tools.github.list_issues({ repo: 'x' })`.
exports.tools = new Proxy({}, {
    get(_, server) {
        if (typeof server !== 'string' || server in globalThis) return globalThis[server];
        throw new ReferenceError(`there is no server ${server}: see \`hotcell servers\``);
    },
});
