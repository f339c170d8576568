// `saveTool(f)`: makes a program of a function and of what it imports, and has hotcell keep it. It runs in the sandbox of the program that calls
// it, when it calls it: as a function of (f, example, call, program, typed), where `program` is the text of the whole program, and `typed` the same
// with its types, if it has some.
(f, example, call, program, typed = '') => {
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

  // Where a text has the function.
  const declared = new RegExp(`(?:export\\s+)?(?:(?:async\\s+)?function\\s*\\*?\\s*|(?:const|let|var)\\s+)${name.replace(/\$/g, '\\$')}(?![\\w$])`);
  // How deep in brackets a sign leads, or out of them. Those of types are some in a text that has types; the arrow is none.
  const turn = (text, at, isTyped) => {
    if ('([{'.includes(text[at]) || (isTyped && text[at] === '<')) return 1;
    return ')]}'.includes(text[at]) || (isTyped && text[at] === '>' && text[at - 1] !== '=') ? -1 : 0;
  };
  // Parameters, up to the bracket that ends them, and what follows.
  const bracket = (text, start, isTyped) => {
    let depth = 0;
    for (let at = start; at >= 0 && at < text.length; at++) {
      const change = turn(text, at, isTyped);
      depth += change;
      if (change < 0 && depth === 0) return [text.slice(start + 1, at), text.slice(at + 1)];
    }
    return ['', ''];
  };
  const [, arrow] = /^(?:async\s+)?([A-Za-z_$][\w$]*)\s*=>/.exec(text) || [];
  const head = arrow || bracket(text, text.indexOf('('))[0];
  const split = (list, signs = ',', isTyped = false) => {
    const parts = [''];
    let depth = 0;
    for (let at = 0; at < list.length; at++) {
      depth += turn(list, at, isTyped);
      if (signs.includes(list[at]) && depth === 0) parts.push('');
      else parts[parts.length - 1] += list[at];
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
  // What its types say.
  const schemaOf = (type = '') => {
    const plain = type.trim().replace(/^Promise<([\s\S]*)>$/, '$1').trim();
    const [list, inner, items] = /^(?:(?:Readonly)?Array<([\s\S]+)>|([\s\S]+)\[\])$/.exec(plain) || [];
    if (list) return { type: 'array', items: schemaOf(inner ?? items) ?? {} };
    if (/^(string|number|boolean)$/.test(plain)) return { type: plain };
    return /^(object$|Record<|\{)/.test(plain) ? { type: 'object' } : undefined;
  };
  const place = typed.search(declared);
  const [written, after] = place < 0 ? ['', ''] : bracket(typed, typed.indexOf('(', place), true);
  const [, members] = (whole && /^\{[^}]*\}\s*:\s*\{([\s\S]*)\}(?:\s*=\s*\{\s*\})?$/.exec(written.trim())) || [];
  for (const parameter of split(members ?? written, members === undefined ? ',' : ',;\n', true)) {
    const [, own, isOptional, type] = /^([A-Za-z_$][\w$]*)(\??)\s*:\s*([^=]+?|[\s\S]+?=>[\s\S]+?)(?:=(?!>)[\s\S]*)?$/.exec(parameter) || [];
    if (!own || !properties[own]) continue;
    Object.assign(properties[own], schemaOf(type));
    if (isOptional && required.includes(own)) required.splice(required.indexOf(own), 1);
  }

  // The comment before it says what it is for.
  const at = program.search(declared);
  const before = at < 0 ? '' : program.slice(0, at).trimEnd();
  const comment = /\/\*\*?([\s\S]*?)\*\/$/.exec(before) || /((?:^|\n)[ \t]*\/\/[^\n]*)+$/.exec(before);
  const about = [];
  const types = ['string', 'number', 'boolean', 'object', 'array'];
  let returns = schemaOf(/^\s*:\s*([\w<>[\], ]+?)\s*(?:\{|=>)/.exec(after)?.[1]);
  for (const line of (comment ? comment[0] : '').split(/\n|(?=@(?:param|returns?)\b)/)) {
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
