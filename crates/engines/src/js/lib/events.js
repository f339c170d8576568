// node's EventEmitter, and the web's events as far as AbortController needs them.
(function () {
  'use strict';

  class EventEmitter {
    #listeners = new Map();
    on(name, listener) {
      const known = this.#listeners.get(name) ?? [];
      this.#listeners.set(name, [...known, listener]);
      return this;
    }
    addListener(name, listener) {
      return this.on(name, listener);
    }
    prependListener(name, listener) {
      this.#listeners.set(name, [listener, ...(this.#listeners.get(name) ?? [])]);
      return this;
    }
    once(name, listener) {
      const once = (...args) => {
        this.off(name, once);
        return listener.apply(this, args);
      };
      once.listener = listener;
      return this.on(name, once);
    }
    off(name, listener) {
      const left = this.listeners(name).filter((known) => known !== listener && known.listener !== listener);
      this.#listeners.set(name, left);
      return this;
    }
    removeListener(name, listener) {
      return this.off(name, listener);
    }
    removeAllListeners(name) {
      if (name === undefined) this.#listeners.clear();
      else this.#listeners.delete(name);
      return this;
    }
    emit(name, ...args) {
      const known = this.listeners(name);
      if (known.length === 0 && name === 'error') throw args[0];
      for (const listener of known) listener.apply(this, args);
      return known.length > 0;
    }
    listeners(name) {
      return [...(this.#listeners.get(name) ?? [])];
    }
    listenerCount(name) {
      return this.listeners(name).length;
    }
    eventNames() {
      return [...this.#listeners.keys()];
    }
    setMaxListeners() {
      return this;
    }
    static once(emitter, name) {
      return new Promise((resolve, reject) => {
        emitter.once(name, (...args) => resolve(args));
        if (name !== 'error') emitter.once('error', reject);
      });
    }
  }

  class Event {
    defaultPrevented = false;
    target = null;
    constructor(type, options) {
      this.type = type;
      this.cancelable = Boolean(options?.cancelable);
    }
    preventDefault() {
      this.defaultPrevented = this.cancelable;
    }
  }

  class EventTarget {
    #emitter = new EventEmitter();
    addEventListener(type, listener, options) {
      const call = (event) => (listener.handleEvent ?? listener).call(this, event);
      call.listener = listener;
      this.#emitter[options?.once ? 'once' : 'on'](type, options?.once ? call : Object.assign(call, { listener }));
    }
    removeEventListener(type, listener) {
      this.#emitter.off(type, listener);
    }
    dispatchEvent(event) {
      event.target = this;
      this[`on${event.type}`]?.(event);
      this.#emitter.emit(event.type, event);
      return !event.defaultPrevented;
    }
  }

  const aborted = () => Object.assign(new Error('This operation was aborted'), { name: 'AbortError', code: 20 });
  class AbortSignal extends EventTarget {
    aborted = false;
    reason = undefined;
    throwIfAborted() {
      if (this.aborted) throw this.reason;
    }
    static abort(reason = aborted()) {
      return Object.assign(new AbortSignal(), { aborted: true, reason });
    }
    static timeout(delay) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), delay).unref();
      return controller.signal;
    }
  }
  class AbortController {
    signal = new AbortSignal();
    abort(reason = aborted()) {
      if (this.signal.aborted) return;
      Object.assign(this.signal, { aborted: true, reason });
      this.signal.dispatchEvent(new Event('abort'));
    }
  }

  return { EventEmitter, Event, EventTarget, AbortController, AbortSignal };
});
