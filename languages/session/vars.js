// Values that the calls of a session share, whatever their language: all that JSON has. For node, and for the engine inside hotcell.
(fs, inspect, folder) => {
    const at = (name) => {
        if (!/^[A-Za-z_][\w.-]{0,63}$/.test(name)) throw new RangeError(`not a name for a value: ${name}`);
        return `${folder}/${name}`;
    };
    const keys = () => (fs.existsSync(folder) ? fs.readdirSync(folder).filter((name) => !name.endsWith('~')).sort() : []);
    const get = (name) => JSON.parse(fs.readFileSync(at(name), 'utf8'));
    const has = (_, name) => typeof name === 'string' && keys().includes(name);
    const vars = new Proxy({ [Symbol.for('nodejs.util.inspect.custom')]: () => ({ ...vars }) }, {
        has,
        get: (own, name) => (has(own, name) ? get(name) : own[name]),
        set(_, name, value) {
            const [path, text] = [at(String(name)), JSON.stringify(value)];
            if (text === undefined) throw new TypeError(`JSON has no such value as ${inspect(value)}`);
            if (text.length > 1 << 20) throw new RangeError('a value has 1 MiB at most; write it to a file');
            fs.mkdirSync(folder, { recursive: true });
            fs.writeFileSync(`${path}~`, text);
            fs.renameSync(`${path}~`, path);
            return true;
        },
        deleteProperty(_, name) {
            if (has(_, name)) fs.unlinkSync(at(name));
            return true;
        },
        ownKeys: keys,
        getOwnPropertyDescriptor: (_, name) => (has(_, name) ? { value: get(name), writable: true, enumerable: true, configurable: true } : undefined),
    });
    return vars;
}
