// node's `path`, for the one kind of paths that a cell has.
(function (host) {
  'use strict';

  const normalize = (path) => {
    const parts = [];
    for (const part of path.split('/')) {
      if (part === '' || part === '.') continue;
      if (part !== '..') parts.push(part);
      else if (parts.length && parts.at(-1) !== '..') parts.pop();
      else if (!path.startsWith('/')) parts.push(part);
    }
    const body = parts.join('/');
    const end = path.endsWith('/') && body ? '/' : '';
    return path.startsWith('/') ? `/${body}${end}` : (body || '.') + end;
  };
  const join = (...parts) => normalize(parts.filter(Boolean).join('/') || '.');
  const resolve = (...parts) => {
    let path = '';
    for (const part of [host.cwd, ...parts]) path = part.startsWith('/') ? part : `${path}/${part}`;
    return normalize(path).replace(/(.)\/$/, '$1');
  };
  const basename = (path, ending = '') => {
    const name = path.replace(/\/+$/, '').split('/').at(-1);
    return ending && name !== ending && name.endsWith(ending) ? name.slice(0, -ending.length) : name;
  };
  const extname = (path) => /[^/.]\.?(\.[^./]*)$/.exec(basename(path))?.[1] ?? '';
  const dirname = (path) => {
    const cut = path.replace(/\/+$/, '').replace(/\/*[^/]*$/, '');
    return cut || (path.startsWith('/') ? '/' : '.');
  };
  const relative = (from, to) => {
    const [a, b] = [resolve(from), resolve(to)].map((path) => path.split('/').filter(Boolean));
    let same = 0;
    while (same < a.length && a[same] === b[same]) same++;
    return [...a.slice(same).map(() => '..'), ...b.slice(same)].join('/');
  };
  const parse = (path) => {
    const [base, ext] = [basename(path), extname(path)];
    return { root: path.startsWith('/') ? '/' : '', dir: path.includes('/') ? dirname(path) : '', base, ext, name: basename(base, ext) };
  };
  const path = { sep: '/', delimiter: ':', normalize, join, resolve, basename, extname, dirname, relative, parse, isAbsolute: (path) => path.startsWith('/') };
  path.posix = path;
  return path;
});
