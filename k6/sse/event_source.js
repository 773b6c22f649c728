// The class EventSource (HTML standard, section 9.2.2), with the listeners and events of the DOM standard. Each virtual
// user has its own class. connect() starts the stream of a source and returns its Go part, a sourceObject.
(connect) => {
  const eventPrototype = Object.freeze({
    bubbles: false, cancelable: false, defaultPrevented: false, isTrusted: true, [Symbol.toStringTag]: 'Event',
  });
  const messagePrototype = Object.freeze(Object.create(eventPrototype, { [Symbol.toStringTag]: { value: 'MessageEvent' } }));
  const quote = (value) => (typeof value === 'string' ? JSON.stringify(value) : String(value));
  const isObject = (value) => Object(value) === value;
  let fire;

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
        this.#set([...this.#listeners, { type: String(type), callback, once: isObject(options) && Boolean(options.once) }]);
      }
    }

    removeEventListener(type, callback) {
      if (isListener(arguments)) {
        this.#set(this.#listeners.filter((listener) => !this.#isEqual(type, callback)(listener)));
      }
    }

    dispatchEvent(event) {
      if (!isObject(event) || event.type === undefined) {
        throw new TypeError(`EventSource.dispatchEvent: the event must be an object with a type, got ${quote(event)}`);
      }
      event.target = this;
      this.#dispatch(String(event.type), event);
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
    #dispatch(type, event) {
      Object.defineProperty(event, 'currentTarget', { value: this, writable: true, configurable: true });
      try {
        for (const listener of this.#listeners) {
          if (listener.type !== type || !this.#listeners.includes(listener)) {
            continue;
          }
          if (listener.once) {
            this.#set(this.#listeners.filter((other) => other !== listener));
          }
          if (typeof listener.callback === 'function') {
            listener.callback.call(this, event);
          } else if (typeof listener.callback.handleEvent === 'function') {
            listener.callback.handleEvent(event);
          } else {
            throw new Error('EventSource: the listener has no function handleEvent');
          }
        }
      } finally {
        Reflect.set(event, 'currentTarget', null); // a listener may have frozen the event
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
        const event = { type, target: source, timeStamp };
        for (let i = 0; i < attributes.length; i += 2) {
          event[attributes[i]] = attributes[i + 1];
        }
        // The prototype is set last, because its properties are read-only.
        source.#dispatch(type, Object.setPrototypeOf(event, isMessage ? messagePrototype : eventPrototype));
      };
    }
  }
  return { EventSource, fire };
};
