// The page of a hotcell server. It is one more MCP client: all that it shows it asks for at /mcp, with the token.
// What programs print is a stranger's: it only ever becomes text (`textContent`), or a picture of a known kind.

const byId = (id) => document.getElementById(id);
const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const LONGEST = 200_000;

// The part after `#` is sent to nobody. It goes at once, so that it is in no history.
const given = new URLSearchParams(location.hash.slice(1)).get('token');
if (given) sessionStorage.setItem('token', given);
history.replaceState(null, '', location.pathname);

let number = 0;
class Refused extends Error {}

async function ask(method, params) {
  const token = sessionStorage.getItem('token');
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'mcp-protocol-version': '2025-11-25' };
  if (token) headers.authorization = `Bearer ${token}`;
  const body = JSON.stringify({ jsonrpc: '2.0', id: ++number, method, params });
  const answer = await fetch('mcp', { method: 'POST', headers, body, cache: 'no-store', credentials: 'omit' });
  if (answer.status === 401) throw new Refused(token ? 'this token is wrong' : 'a token is needed');
  if (!answer.ok) throw new Error((await answer.text()).trim().slice(0, 200));
  const said = await answer.json();
  if (said.error) throw new Error(said.error.message);
  return said.result;
}
const call = (name, args) => ask('tools/call', { name, arguments: args });
const read = async (uri) => (await ask('resources/read', { uri })).contents[0];

// An element with a text, or with others in it.
function make(name, inside, more = {}) {
  const element = Object.assign(document.createElement(name), more);
  if (Array.isArray(inside)) element.append(...inside);
  else element.textContent = inside ?? '';
  return element;
}

// What a table was made of last: one that is the same stays, with the button that somebody is about to press.
const made = {};

function fill(table, from, heads, rows, none) {
  const key = JSON.stringify([from, shown.id]);
  if (made[table] === key) return;
  made[table] = key;
  const row = (cells, name) => make('tr', cells.map((it) => (it instanceof Node ? make(name, [it]) : make(name, it))));
  const all = rows.map((cells) => row(cells, 'td'));
  byId(table).replaceChildren(...(all.length ? [row(heads, 'th'), ...all] : [row([none], 'td')]));
}

const button = (text, onclick) => make('button', text, { onclick, type: 'button' });
const seconds = (it) => (it == null ? '' : it < 10 ? `${it.toFixed(2)} s` : `${Math.round(it)} s`);
const coloured = (it, good, plain) => make('span', it, { className: good.includes(it) ? 'good' : plain.includes(it) ? '' : 'bad' });
const attempt = (work) => async (event) => {
  event?.preventDefault?.();
  try {
    await work();
  } catch (error) {
    failed(error);
  }
};

function failed(error) {
  byId('health').textContent = error.message;
  byId('health').className = 'bad';
  if (!(error instanceof Refused)) return;
  sessionStorage.removeItem('token');
  byId('enter').hidden = false;
  byId('main').hidden = byId('forget').hidden = true;
}

// The run whose output is shown.
let shown = { id: '', next: 0, over: true };

function show(id) {
  shown = { id, next: 0, over: false };
  byId('which').textContent = id;
  byId('output').textContent = '';
  byId('pictures').replaceChildren();
  return follow();
}

function picture(mime, data) {
  if (PICTURES.includes(mime)) byId('pictures').append(make('img', '', { src: `data:${mime};base64,${data}`, alt: 'shown by the program' }));
}

async function follow() {
  const mine = shown;
  if (!mine.id || mine.over) return;
  const { structuredContent: facts, content } = await call('session', { job: mine.id, since: mine.next });
  if (mine !== shown) return;
  const output = byId('output');
  byId('end').hidden = facts.status !== 'running';
  if (facts.status === 'running') {
    mine.next = facts.next;
    output.textContent = (output.textContent + facts.stdout).slice(-LONGEST);
    output.scrollTop = output.scrollHeight;
    return;
  }
  mine.over = true;
  const error = facts.error && `[${facts.error.kind}] ${facts.error.message}${facts.error.hint ? `\n${facts.error.hint}` : ''}`;
  const value = facts.value === undefined ? '' : typeof facts.value === 'string' ? facts.value : JSON.stringify(facts.value, null, 1);
  output.textContent = [facts.stdout?.trimEnd(), value, facts.stderr, error, ...(facts.notes ?? [])].filter(Boolean).join('\n').slice(-LONGEST);
  byId('pictures').replaceChildren();
  const blocks = content.filter((it) => it.type === 'image');
  for (const it of blocks) picture(it.mimeType, it.data);
  if (blocks.length) return;
  for (const it of facts.displays ?? []) {
    if (!it.uri) continue;
    const { mimeType, blob } = await read(it.uri);
    if (mine === shown && blob) picture(mimeType, blob);
  }
}

async function look() {
  const state = JSON.parse((await read('hotcell://state')).text);
  byId('enter').hidden = true;
  byId('main').hidden = false;
  byId('forget').hidden = !sessionStorage.getItem('token');
  const missing = (state.isolation?.walls ?? []).filter((it) => !it.stands).map((it) => it.name);
  const walls = state.isolation ? `isolation ${state.isolation.level}${missing.length ? ` (without ${missing.join(', ')})` : ''}` : 'isolation is known after a run';
  byId('health').textContent = `${state.version} · up ${seconds(state.up_s)} · ${state.running} running, ${state.waiting} waiting · ${walls}`;
  byId('health').className = '';
  fill('runs', state.runs, ['', 'language', 'program', 'time', ''], state.runs.map((it) => [
    coloured(it.status, ['ok'], ['running']),
    [it.language, it.session && `in ${it.session}`].filter(Boolean).join(' '),
    make('code', it.first_line),
    seconds(it.seconds),
    button(it.id === shown.id ? 'shown' : 'show', attempt(() => show(it.id))),
  ]), state.recorded ? 'nothing has run yet' : 'nothing runs; runs that have ended are not recorded here');
  fill('servers', state.servers, ['name', 'state', 'tools', ''], state.servers.map((it) => [it.name, coloured(it.state, ['running'], ['built in', 'not running', 'starting']), it.tools, make('code', it.error)]), 'none are configured');
  const { sessions } = (await call('session', { action: 'list' })).structuredContent;
  fill('sessions', sessions, ['name', 'language', 'calls', 'idle', ''], sessions.map((it) => [
    it.name, it.language, it.calls, it.idle_s == null ? 'running' : seconds(it.idle_s),
    button('close', attempt(async () => {
      await call('session', { action: 'close', name: it.name });
      await look();
    })),
  ]), 'there are none');
  await follow();
}

async function languages() {
  const all = JSON.parse((await read('hotcell://languages')).text);
  fill('languages', all, ['language', 'version', 'starts', ''], all.map((it) => [
    it.id, it.version, it.start, it.available ? '' : make('code', it.problem, { className: 'dim' }),
  ]), 'none');
  byId('language').replaceChildren(make('option', 'detected', { value: '' }), ...all.filter((it) => it.available).map((it) => make('option', it.id, { value: it.id })));
}

async function start() {
  const asked = { code: byId('code').value, background: true };
  if (byId('language').value) asked.language = byId('language').value;
  if (byId('session').value.trim()) asked.session = byId('session').value.trim();
  const { structuredContent: facts } = await call('run', asked);
  if (facts.job) return void (await show(facts.job));
  shown = { id: '', next: 0, over: true };
  byId('output').textContent = `${facts.error?.message ?? ''}\n${facts.error?.hint ?? ''}`;
}

async function begin() {
  await look();
  await languages();
}

byId('try').onsubmit = attempt(start);
byId('code').onkeydown = (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) byId('try').requestSubmit();
};
byId('end').onclick = attempt(() => call('session', { job: shown.id, action: 'cancel' }).then(follow));
byId('forget').onclick = () => failed(new Refused('the token is forgotten'));
byId('enter').onsubmit = attempt(async () => {
  sessionStorage.setItem('token', byId('token').value.trim());
  byId('token').value = '';
  await begin();
});

// One look after the other, and none while nobody sees the page.
async function watch() {
  await attempt(async () => {
    const isOpen = !byId('main').hidden && document.visibilityState === 'visible';
    if (isOpen) await look();
  })();
  setTimeout(watch, shown.over ? 2000 : 700);
}
await attempt(begin)();
watch();
