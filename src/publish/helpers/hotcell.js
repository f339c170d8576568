// What a published script can say beside what it prints. See `hotcell help publish`.
const fs = require('fs');

const mark = process.env.HOTCELL_TALK || '';
const load = (name) => JSON.parse(fs.readFileSync(`/workspace/${name}`, 'utf8'));

// At once and in order: a script may end right after it has spoken.
function say(message) {
  let rest = Buffer.from(`${mark}${JSON.stringify(message)}\n`);
  while (rest.length) {
    try {
      rest = rest.subarray(fs.writeSync(1, rest));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

const base64 = (data) => Buffer.from(data).toString('base64');

module.exports = {
  arguments: load('arguments.json'),
  client: JSON.parse(process.env.HOTCELL_CLIENT || '{}'),
  uri: process.env.HOTCELL_URI,
  say,
  text: (text, more) => say({ type: 'text', text, ...more }),
  image: (data, mimeType = 'image/png', more) => say({ type: 'image', data: base64(data), mimeType, ...more }),
  audio: (data, mimeType = 'audio/wav', more) => say({ type: 'audio', data: base64(data), mimeType, ...more }),
  resource(uri, content, mimeType, more) {
    const inner = typeof content === 'string' ? { text: content } : { blob: base64(content) };
    say({ type: 'resource', resource: { uri, mimeType, ...inner }, ...more });
  },
  link: (uri, name, more) => say({ type: 'resource_link', uri, name, ...more }),
  structured: (content) => say({ type: 'structured', content }),
  progress: (progress, total, message) => say({ type: 'progress', progress, total, message }),
  log: (data, level = 'info') => say({ type: 'log', level, data }),
  // Tells clients to look again: 'tools', 'prompts', 'resources', or one address.
  changed: (what) => say({ type: 'changed', what }),

  // Calls a function with the arguments, all in one object or one by one, and returns what it returns. What it logs goes to standard error.
  async answer(f, names) {
    if ('HOTCELL_TRIAL' in process.env) return;
    const given = this.arguments;
    console.log = console.info = console.error;
    const value = (await f(...(names ? names.map((name) => given[name]) : [given]))) ?? null;
    this.text(typeof value === 'string' ? value : JSON.stringify(value));
    this.structured({ result: value });
  },

  // Asks the client; {key: {method, params}} comes back as {key: result}. While an answer
  // is missing this does not return: the script ends here and is started anew later.
  askAll(questions) {
    say({ type: 'ask', questions });
    const answers = load('answers.json');
    if (Object.keys(questions).some((key) => !(key in answers))) process.exit(0);
    return answers;
  },

  // Shows the user a form; gives its content, or null if it was not accepted.
  ask(key, message, properties, required = Object.keys(properties)) {
    const requestedSchema = { type: 'object', properties, required };
    const answer = this.askAll({ [key]: { params: { message, requestedSchema } } })[key];
    return answer.action === 'accept' ? answer.content : null;
  },
};
