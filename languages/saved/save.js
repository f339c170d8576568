// `saveTool(f)`: makes a program of a function and of what it imports, and has hotcell keep it. It runs in the sandbox of the program that calls
// it, when it calls it: as a function of (f, example, call, program), where `program` is the text of the whole program.
(f, example, call, program) => {
  if (typeof f !== 'function') throw new TypeError('saveTool expects a function');
  const text = Function.prototype.toString.call(f);
  const { name } = f;
  if (!/^[A-Za-z_$][\w$]*$/.test(name) || text.includes('[native code]')) throw new TypeError('saveTool needs a function with a name');
  const isFunction = /^(async\s+)?function\b/.test(text);
  if (!isFunction && /^(async\s+)?[\w$]+\s*\([^)]*\)\s*\{/.test(text)) throw new TypeError(`${name} is a method: write it as a function`);
  const source = isFunction && text.includes(name) ? text : `const ${name} = ${text};`;

  const uses = (text, word) => new RegExp(`(^|[^\\w$.])${word.replace(/\$/g, '\\$')}(?![\\w$])`).test(text);

  // Functions, classes and values of the program's top level that it uses, and what those use. Where one ends the engine's own parser tells: at
  // the first line with which it is whole.
  const kept = new Map();
  const keep = (text) => {
    for (const match of program.matchAll(/^(?:export\s+)?(?=(?:async\s+)?function\s*\*?\s*([\w$]+)|class\s+([\w$]+)|(?:const|let|var)\s+([\w$]+)\s*=)/gm)) {
      const own = match[1] || match[2] || match[3];
      const lines = program.slice(match.index + match[0].length).split('\n');
      if (own === name || kept.has(own) || !uses(text, own) || /^\s*(const|let|var)\s+[\w$]+\s*=\s*(await\s+import|require)\s*\(/.test(lines[0])) continue;
      const isWhole = (count) => {
        try {
          new Function(`return async () => {${lines.slice(0, count).join('\n')}\n}`);
          return !/^(\s+\S|[.)\]}?:+*/&|,=])/.test(lines[count] ?? '');
        } catch {
          return false;
        }
      };
      let count = 1;
      while (count <= Math.min(lines.length, 400) && !isWhole(count)) count++;
      if (!isWhole(count)) throw new TypeError(`\`${own}\` cannot be kept with ${name}: put it inside the function, or pass it as an argument`);
      const found = lines.slice(0, count).join('\n');
      kept.set(own, { at: match.index, found });
      keep(found);
    }
  };
  keep(text);
  const helpers = [...kept.values()].sort((a, b) => a.at - b.at).map(({ found }) => found);

  // The imports whose names they use.
  const words = (names) => names.split(/[,{}\s]+/).filter((word) => /^[A-Za-z_$][\w$]*$/.test(word) && !['as', 'type'].includes(word));
  const lines = [
    ...program.matchAll(/^[ \t]*import\s+(?!type\b)([^;'"]+?)\s+from\s+['"][^'"\n]+['"];?/gm),
    ...program.matchAll(/^[ \t]*(?:const|let|var)\s+([^=;]+?)\s*=\s*(?:await\s+import|require)\s*\(\s*['"][^'"\n]+['"]\s*\);?/gm),
  ];
  const imports = lines.filter(([, names]) => words(names).some((word) => [text, ...helpers].some((it) => uses(it, word)))).map(([line]) => line.trim());

  // Its parameters, up to the bracket or the arrow that ends them.
  const head = (() => {
    const start = text.indexOf('(');
    const arrow = /^(?:async\s+)?([A-Za-z_$][\w$]*)\s*=>/.exec(text);
    if (arrow) return arrow[1];
    let depth = 0;
    for (let at = start; at < text.length; at++) {
      if ('([{'.includes(text[at])) depth++;
      if (')]}'.includes(text[at]) && --depth === 0) return text.slice(start + 1, at);
    }
    return '';
  })();
  const split = (list) => {
    const parts = [''];
    let depth = 0;
    for (const sign of list) {
      if ('([{'.includes(sign)) depth++;
      if (')]}'.includes(sign)) depth--;
      if (sign === ',' && depth === 0) parts.push('');
      else parts[parts.length - 1] += sign;
    }
    return parts.map((part) => part.trim()).filter(Boolean);
  };
  let parameters = split(head);
  // `({ a, b = 1 }) => …` is called with all of them in one object.
  const whole = parameters.length === 1 && /^\{[\s\S]*\}(\s*=\s*\{\s*\})?$/.test(parameters[0]);
  if (whole) parameters = split(parameters[0].replace(/^\{|\}(\s*=\s*\{\s*\})?$/g, ''));
  const properties = {};
  const required = [];
  for (const parameter of parameters) {
    const [, own, usual] = /^([A-Za-z_$][\w$]*)\s*(?::[^=]*)?(?:=\s*([\s\S]+))?$/.exec(parameter) || [];
    if (!own) throw new TypeError(`the parameter \`${parameter}\` cannot be given by name, as the arguments of a tool are`);
    properties[own] = {};
    if (usual === undefined) required.push(own);
    else {
      try {
        properties[own].default = JSON.parse(usual.replace(/^'([^'"\\]*)'$/, '"$1"'));
        const kind = typeof properties[own].default;
        if (kind !== 'object') properties[own].type = kind;
      } catch {
        properties[own].description = `default ${usual}`;
      }
    }
  }
  // The comment before it says what it is for.
  const own = name.replace(/\$/g, '\\$');
  const at = program.search(new RegExp(`(?:export\\s+)?(?:(?:async\\s+)?function\\s+${own}|(?:const|let|var)\\s+${own})(?![\\w$])`));
  const before = at < 0 ? '' : program.slice(0, at).trimEnd();
  const comment = /\/\*\*?([\s\S]*?)\*\/$/.exec(before) || /((?:^|\n)[ \t]*\/\/[^\n]*)+$/.exec(before);
  const about = [];
  const types = ['string', 'number', 'boolean', 'object', 'array'];
  let returns;
  for (const line of (comment ? comment[0] : '').split('\n')) {
    const plain = line.replace(/^[\s/*]+|[\s/*]+$/g, '');
    const [, type, own, what] = /^@param\s+(?:\{(\w+)\}\s*)?\[?([\w$]+)[^\s]*\s*-?\s*(.*)$/.exec(plain) || [];
    const [, given, list] = /^@returns?\s+\{(?:Promise<)?(\w+)(\[\])?>?\}/.exec(plain) || [];
    if (own && properties[own]) {
      if (types.includes(type)) properties[own].type = type;
      if (what) properties[own].description = what;
    } else if (types.includes(given)) {
      returns = list ? { type: 'array', items: { type: given } } : { type: given };
    } else if (plain && !plain.startsWith('@')) about.push(plain);
  }
  const schema = { type: 'object', properties, required, additionalProperties: false };
  const names = whole ? '' : `, ${JSON.stringify(Object.keys(properties))}`;
  const answer = `import('./hotcell.js').then(({ default: hotcell }) => hotcell.answer(${name}${names}));`;
  const file = [...imports, '', ...helpers, '', source, '', answer, ''].join('\n').trimStart();
  const tool = { language: 'javascript', name, source: file, description: about.join('\n'), schema, ...(returns && { returns }) };
  return call('saved', 'save_tool', example === undefined ? tool : { ...tool, example });
}
