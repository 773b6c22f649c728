// The class EventSource (HTML standard, section 9.2.2), with the listeners and events of the DOM standard. Each virtual
// user has its own class. connect() starts the stream of a source and returns its Go part, a sourceObject.
(connect) => {
  const event = Object.freeze({
    bubbles: false, cancelable: false, defaultPrevented: false, isTrusted: true, [Symbol.toStringTag]: 'Event',
  });
  const messageEvent = Object.freeze(Object.create(event, { [Symbol.toStringTag]: { value: 'MessageEvent' } }));
  const quote = (value) => (typeof value === 'string' ? JSON.stringify(value) : String(value));
  const isObject = (value) => Object(value) === value;
  let fire;

  // checkText throws unless a part of a second request is a function or a template without unknown placeholders.
  const checkText = (name, value) => {
    const unknown = /\{first\.(?!(?:id|name|data)\}).*/s.exec(value);
    if (typeof value !== 'function' && typeof value !== 'string') {
      throw new TypeError(`EventSource: option then: ${name}: must be a string or a function, got ${value}`);
    } else if (typeof value === 'string' && unknown) {
      throw new TypeError(`EventSource: option then: ${name}: unknown placeholder ${quote(unknown[0].slice(0, 40))}; ` +
        'use {first.id}, {first.name} or {first.data}');
    }
  };

  // copyThen returns a copy of the parts of the option then that depend on the first event.
  const copyThen = ({ url, headers, body = '' }) => {
    checkText('url', url);
    checkText('body', body);
    Object.entries(headers ?? {}).forEach(([name, value]) => checkText(`headers: ${name}`, value));
    return { url, headers: { ...headers }, body };
  };

  // fillText returns the result of a function of the first event, or a template with the escaped values of the event.
  const fillText = (name, value, first, escape) => {
    if (typeof value === 'string') {
      return value.replace(/\{first\.(id|name|data)\}/g, (_, part) => escape(first[part]));
    }
    const text = value(first);
    if (typeof text !== 'string') {
      throw new Error(`EventSource: option then: ${name}: the function must return a string, got ${text}`);
    }
    return text;
  };

  // escapeFor returns the function that escapes a value in a body with the given Content-Type.
  const escapeFor = (contentType) => {
    const media = contentType.split(';')[0].trim().toLowerCase();
    if (media === 'application/json' || media.endsWith('+json')) {
      return (value) => JSON.stringify(value).slice(1, -1);
    }
    return media === 'application/x-www-form-urlencoded' ? encodeURIComponent : String;
  };

  // fillThen returns the second request for the first event of a stream. The service chooses the whole URL if the URL
  // is only a placeholder.
  const fillThen = (then, first) => {
    const byService = /^\{first\.(id|name|data)\}$/.test(then.url);
    const url = fillText('url', then.url, first, byService ? String : encodeURIComponent);
    const headers = {};
    let contentType = '';
    for (const [name, value] of Object.entries(then.headers)) {
      headers[name] = fillText(`headers: ${name}`, value, first, String);
      if (name.toLowerCase() === 'content-type') {
        contentType = headers[name];
      }
    }
    return { url, byService, headers, body: fillText('body', then.body, first, escapeFor(contentType)) };
  };

  // isListener reports whether the arguments type and callback name a listener. A callback that is null or undefined
  // names none. isListener throws for any other value that is not an object, and if callback is missing.
  const isListener = (args) => {
    if (isObject(args[1])) {
      return true;
    }
    if (args[1] === null || (args[1] === undefined && args.length > 1)) {
      return false;
    }
    throw new TypeError(`EventSource: the listener for ${quote(String(args[0]))} must be a function or an object`);
  };

  class EventSource {
    #stream; // the sourceObject
    #listeners = []; // in the order of their calls; each change replaces the list, because a dispatch may be using it

    constructor(url) {
      if (arguments.length === 0) {
        throw new TypeError('EventSource: a URL is required');
      }
      this.#stream = connect(this, String(url), arguments[1]);
    }

    get reconnect() {
      return this.#stream.reconnects();
    }

    set reconnect(on) {
      this.#stream.setReconnect(on);
    }

    get idleTimeout() {
      return this.#stream.idleTimeout();
    }

    set idleTimeout(timeout) {
      this.#stream.setIdleTimeout(timeout);
    }

    close() {
      this.#stream.close();
    }

    drop(immediate) {
      return this.#stream.drop(Boolean(immediate));
    }

    vanish() {
      return this.#stream.vanish();
    }

    slow(bytesPerSecond) {
      if (!(Number(bytesPerSecond) >= 0)) {
        throw new TypeError(`EventSource.slow: the rate must be at least 0 bytes per second, got ${bytesPerSecond}`);
      }
      return this.#stream.slow(Number(bytesPerSecond));
    }

    addEventListener(type, callback, options) {
      const isNew = isListener(arguments) && !this.#listeners.some(this.#isEqual(type, callback));
      if (isNew) {
        const once = isObject(options) && Boolean(options.once);
        this.#set([...this.#listeners, { type: String(type), callback, once }]);
      }
    }

    removeEventListener(type, callback) {
      if (isListener(arguments)) {
        this.#set(this.#listeners.filter((listener) => !this.#isEqual(type, callback)(listener)));
      }
    }

    dispatchEvent(dispatched) {
      if (!isObject(dispatched) || dispatched.type === undefined) {
        const got = quote(dispatched);
        throw new TypeError(`EventSource.dispatchEvent: the event must be an object with a type, got ${got}`);
      }
      dispatched.target = this;
      this.#dispatch(String(dispatched.type), dispatched);
      return true; // events cannot be canceled
    }

    #isEqual(type, callback) {
      return (listener) => !listener.isHandler && listener.type === String(type) && listener.callback === callback;
    }

    #set(listeners) {
      this.#listeners = listeners;
      this.#stream.listen(listeners.map((listener) => listener.type));
    }

    #handler(type) {
      return this.#listeners.find((listener) => listener.isHandler && listener.type === type);
    }

    // A new handler takes the position of the old one. Without an old one, it becomes the last listener (HTML standard,
    // section 8.1.8.1). According to Web IDL, a value that is not an object counts as null.
    #setHandler(type, callback) {
      const old = this.#handler(type);
      if (!isObject(callback)) {
        this.#set(this.#listeners.filter((listener) => listener !== old));
      } else if (old) {
        old.callback = callback;
      } else {
        this.#set([...this.#listeners, { type, callback, isHandler: true }]);
      }
    }

    // #dispatch calls the listeners of a type that existed at its start, unless an earlier one has removed them.
    #dispatch(type, dispatched) {
      Object.defineProperty(dispatched, 'currentTarget', { value: this, writable: true, configurable: true });
      try {
        for (const listener of this.#listeners) {
          if (listener.type !== type || !this.#listeners.includes(listener)) {
            continue;
          }
          if (listener.once) {
            this.#set(this.#listeners.filter((other) => other !== listener));
          }
          if (typeof listener.callback === 'function') {
            listener.callback.call(this, dispatched);
          } else if (typeof listener.callback.handleEvent === 'function') {
            listener.callback.handleEvent(dispatched);
          } else {
            throw new Error('EventSource: the listener has no function handleEvent');
          }
        }
      } finally {
        dispatched.currentTarget = null;
      }
    }

    static {
      const prototype = this.prototype;
      const define = (object, name, property) => Object.defineProperty(object, name, { ...property, enumerable: true });
      for (const name of ['url', 'withCredentials', 'readyState', 'status', 'connectMs']) {
        define(prototype, name, { configurable: true, get() { return this.#stream[name](); } });
      }
      for (const type of ['open', 'message', 'error']) {
        define(prototype, `on${type}`, {
          configurable: true,
          get() { return this.#handler(type)?.callback ?? null; },
          set(callback) { this.#setHandler(type, callback); },
        });
      }
      for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
        if (name !== 'constructor') {
          define(prototype, name, property);
        }
      }
      ['CONNECTING', 'OPEN', 'CLOSED'].forEach((name, value) => {
        define(this, name, { value });
        define(prototype, name, { value });
      });
      Object.defineProperty(prototype, Symbol.toStringTag, { value: 'EventSource', configurable: true });

      // fire dispatches a new event. attributes are alternating names and values.
      fire = (source, isMessage, type, timeStamp, ...attributes) => {
        const fired = { type, target: source, timeStamp };
        for (let i = 0; i < attributes.length; i += 2) {
          fired[attributes[i]] = attributes[i + 1];
        }
        // The prototype is set last, because its properties are read-only.
        source.#dispatch(type, Object.setPrototypeOf(fired, isMessage ? messageEvent : event));
      };
    }
  }
  return { EventSource, fire, copyThen, fillThen };
};
