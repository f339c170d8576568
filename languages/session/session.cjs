// A session in JavaScript, for node: it takes calls from a FIFO, runs each as one does at a prompt (names can be declared again, `await` is
// allowed), and says when it is done. A call is `NUMBER BYTES INPUT\n` and its code, and is answered with `done NUMBER CODE BYTES\n` and the
// value of its last expression. Number 0 is ours, and is not answered.
(() => {
    const fs = require('fs'), net = require('net'), util = require('util'), vm = require('vm');
    const path = require('path'), { createRequire } = require('module'), { Session } = require('inspector');
    const folder = path.resolve('.home/.hotcell'), here = process.cwd(), { $module: fill, $vars: vars } = globalThis;
    delete globalThis.$module;
    delete globalThis.$vars;
    const calls = new net.Socket({ fd: fs.openSync(folder + '/calls', 'r'), readable: true, writable: false });
    const answers = fs.openSync(folder + '/answers', 'w');
    for (const name of [folder + '/calls', folder + '/answers', __filename]) fs.unlinkSync(name);
    const inspector = new Session();
    inspector.connect();
    const hidden = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    const own = createRequire(here + '/');
    let made;
    const hotcell = () => {
        if (!made) {
            fill(made = {});
            made.vars = vars(fs, util.inspect, folder + '/vars');
        }
        return made;
    };
    const wanted = Object.assign((name) => (name === 'hotcell' ? hotcell() : own(name)), own);
    const load = async (name) => (name === 'hotcell' ? { default: hotcell(), ...hotcell() } : import(/^\.{0,2}\//.test(name) ? path.resolve(here, name) : own.resolve.paths(name) ? named(name) : name));
    // As a module of the workspace would.
    const named = (name) => {
        try {
            return own.resolve(name);
        } catch {
            return name;
        }
    };
    for (const [name, value] of Object.entries({ require: wanted, module: { exports: {} }, exports: {}, __dirname: here, $import: load })) {
        hidden(name, value);
    }

    class Exit { constructor(code) { this.code = code; } }
    const exit = process.exit;
    process.exit = (code = process.exitCode) => { throw new Exit(code); };

    // The call that runs: how it ends if something outside of its own code ends it.
    let end = null;
    const fail = (error) => {
        if (error instanceof Exit) return (error.code | 0) & 0xff;
        const text = error instanceof Error ? util.inspect(error) : 'Uncaught ' + util.inspect(error);
        // What is below the program are frames of ours.
        process.stderr.write(text.replace(/\n {4}at (Session\.post|evaluate|new Promise|[^\n]*node:inspector)[^]*?(?=\n {2}\S|\n[^ ]|$)/, '') + '\n');
        return 1;
    };
    const stray = (error) => {
        const code = fail(error);
        if (end) end(code);
    };
    process.on('uncaughtException', stray);
    process.on('SIGINT', () => {
        if (!end) return;
        process.stderr.write('Interrupted\n');
        end(130);
    });

    const post = (method, params) => new Promise((done) => inspector.post(method, params, (error, result) => done(error ? {} : result)));
    let given;
    const declared = () => {
        let names = [];
        inspector.post('Runtime.globalLexicalScopeNames', {}, (error, found) => { names = error ? [] : found.names; });
        return names;
    };
    hidden('$session', { get names() { return declared(); }, evaluate: (text) => post('Runtime.evaluate', { expression: text, replMode: true, awaitPromise: true, objectGroup: 'call' }), give: (value) => { given = value; } });
    const session = globalThis.$session;

    // The value behind what the inspector says of it.
    const value = async (remote) => {
        if (!remote.objectId) return remote.unserializableValue ? vm.runInThisContext(remote.unserializableValue) : remote.value;
        await post('Runtime.callFunctionOn', { functionDeclaration: 'function () { $session.give(this) }', objectId: remote.objectId });
        const taken = given;
        given = undefined;
        return taken;
    };

    // JSON if it is that, but for people at a prompt.
    const form = (result) => {
        let text;
        try {
            text = globalThis.$prompt ? undefined : require(folder + '/display.cjs').json(result);
        } catch {
            // Then it is text.
        }
        return text ?? util.inspect(result);
    };

    // Modules are imported by our function: code at a prompt may not import by itself.
    const names = (list) => list.replace(/\bas\b/g, ':');
    const imports = (text) => text
        .replace(/^([ \t]*)import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)|\{([^}]*)\})?\s*from\s*(['"][^'"]+['"]);?/gm, (all, space, whole, every, some, name) => {
            const lines = '\n'.repeat(all.split('\n').length - 1);
            const parts = [whole && `default: ${whole}`, some && names(some)].filter(Boolean).join(', ').replace(/\s+/g, ' ');
            const first = every ? `const ${every} = await $import(${name});` : '';
            return space + first + (parts ? `const { ${parts} } = await $import(${name});` : '') + lines;
        })
        .replace(/^([ \t]*)import\s*(['"][^'"]+['"]);?/gm, '$1await $import($2);')
        .replace(/(?<![.\w$])import\s*\(/g, '$import(');

    const run = async (text, file) => {
        session.text = imports(text) + '\n//# sourceURL=' + file;
        const said = await vm.runInThisContext('$session.evaluate($session.text)', { breakOnSigint: true });
        const result = said.result ? await value(said.result) : undefined;
        const details = said.exceptionDetails;
        if (!details) return result;
        if (details.scriptId && details.exception && details.exception.className === 'SyntaxError') {
            const lines = text.split('\n'), at = Math.min(details.lineNumber, lines.length - 1);
            const column = Math.min(details.columnNumber, lines[at].length);
            process.stderr.write(`${file}:${at + 1}\n${lines[at]}\n${' '.repeat(column)}^\n\n`);
        }
        throw result;
    };

    // What a call shows is its own; the script for that is loaded by the first that shows something.
    const prepare = (text) => {
        try {
            for (const name of fs.readdirSync(folder + '/display')) fs.unlinkSync(folder + '/display/' + name);
            if (text.includes('display(')) require(folder + '/display.cjs');
        } catch {
            // Then nothing is shown.
        }
    };

    let hadInput = false;
    const read = (hasInput) => {
        if (!hasInput && !hadInput) return;
        hadInput = hasInput;
        fs.closeSync(0);
        fs.openSync(hasInput ? folder + '/stdin' : '/dev/null', 'r');
        if (hasInput) fs.unlinkSync(folder + '/stdin');
        const stdin = hasInput ? fs.createReadStream(null, { fd: 0, autoClose: false }) : null;
        if (stdin) Object.defineProperty(process, 'stdin', { configurable: true, enumerable: true, get: () => stdin });
    };

    const call = async (number, text, hasInput) => {
        const file = `/tmp/call-${number}.js`;
        try {
            fs.writeFileSync(file, text);
        } catch {
            // It only has no source then.
        }
        process.exitCode = undefined;
        let shown = '';
        const ended = new Promise((done) => { end = done; });
        const work = async () => {
            try {
                read(hasInput);
                prepare(text);
                let result = await run(text, file);
                if (result instanceof Promise) result = await result;
                shown = result === undefined ? '' : form(result);
                return (process.exitCode | 0) & 0xff;
            } catch (error) {
                if (error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') {
                    process.stderr.write('Interrupted\n');
                    return 130;
                }
                return fail(error);
            }
        };
        const code = await Promise.race([work(), ended]);
        end = null;
        let bytes = Buffer.from(shown.length > 16000 ? shown.slice(0, 16000) + ' ...' : shown);
        if (code !== 0) bytes = Buffer.alloc(0);
        inspector.post('Runtime.releaseObjectGroup', { objectGroup: 'call' });
        let said = Buffer.concat([Buffer.from(`done ${number} ${code} ${bytes.length}\n`), bytes]);
        while (said.length) said = said.subarray(fs.writeSync(answers, said));
    };

    let pending = Buffer.alloc(0), last = Promise.resolve();
    calls.on('data', (piece) => {
        pending = Buffer.concat([pending, piece]);
        for (;;) {
            const line = pending.indexOf(10);
            if (line < 0) return;
            const [number, size, input] = pending.subarray(0, line).toString().split(' ').map(Number);
            if (pending.length < line + 1 + size) return;
            const text = pending.subarray(line + 1, line + 1 + size).toString();
            pending = pending.subarray(line + 1 + size);
            last = last.then(() => (number ? call(number, text, input === 1) : vm.runInThisContext(text)));
        }
    });
    calls.on('close', () => exit(0));
})();
