// node's `readline` over the whole of stdin.
(function (host, library) {
  'use strict';

  const { EventEmitter } = library('events');

  class Interface extends EventEmitter {
    #lines;
    #started = false;
    #closed = false;
    constructor(output) {
      super();
      this.output = output;
      setImmediate(() => this.#start());
    }
    #take() {
      this.#lines ??= library('encoding').Buffer.wrap(host.readFile(0)).toString().replace(/\r?\n$/, '').split(/\r?\n/);
      return this.#lines;
    }
    #start() {
      if (this.#started || this.#closed || this.listenerCount('line') === 0) return;
      this.#started = true;
      const lines = this.#take();
      if (lines.length > 1 || lines[0] !== '') {
        while (lines.length && !this.#closed) this.emit('line', lines.shift());
      }
      this.close();
    }
    question(words, options, done) {
      const answer = typeof options === 'function' ? options : done;
      this.output?.write(words);
      const line = this.#take().shift();
      if (line === undefined) return this.close();
      setImmediate(answer, line);
    }
    setPrompt() {}
    prompt() {}
    close() {
      if (this.#closed) return;
      this.#closed = true;
      this.emit('close');
    }
    async *[Symbol.asyncIterator]() {
      this.#started = true;
      const lines = this.#take();
      if (lines.length === 1 && lines[0] === '') return;
      while (lines.length) yield lines.shift();
    }
  }

  const createInterface = (options) => new Interface(options?.output);
  class Asking extends Interface {
    question(words) {
      return new Promise((resolve) => super.question(words, resolve));
    }
  }
  return { createInterface, Interface, promises: { createInterface: (options) => new Asking(options?.output), Interface: Asking } };
});
