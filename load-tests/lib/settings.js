// @ts-check
// Environment variables in, checked values out. A script that reads them stops in the init
// context, with one sentence, before any load is made.

const env = __ENV;

/**
 * @param {string} name
 * @param {number} fallback
 * @returns {number} the variable as a number
 */
export function number(name, fallback) {
  const text = env[name];
  if (text === undefined || text === '') {
    return fallback;
  }
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) {
    throw new Error(`${name} is "${text}": it must be a number.`);
  }
  return value;
}

/**
 * @param {string} name
 * @param {number} fallback
 * @returns {number} the variable as a whole number
 */
export function whole(name, fallback) {
  const value = number(name, fallback);
  if (!Number.isInteger(value)) {
    throw new Error(`${name} is "${env[name]}": it must be a whole number.`);
  }
  return value;
}

/**
 * @param {string} name
 * @param {number[]} fallback
 * @returns {number[]} the variable as whole numbers over 0, with commas between
 */
export function list(name, fallback) {
  const text = env[name];
  if (text === undefined || text === '') {
    return fallback;
  }
  return text.split(',').map((part) => {
    const value = Number(part); // 0 of nothing
    if (!Number.isInteger(value) || value < 1) {
      throw new Error(`${name} is "${text}": it must be whole numbers over 0 with commas between, such as 20,50,100.`);
    }
    return value;
  });
}

/** Scheme, host, port and path of a service; internal/plan/url.go reads URLs by the same expression. */
// eslint-disable-next-line no-control-regex
const SERVICE_URL = /^(https?):\/\/(\[[0-9a-f:.]+\]|[^\x00-\x20\x7f/?#@\\,:[\]]+)(?::([0-9]{1,5}))?(\/[^\x00-\x20\x7f?#\\]*)?\??#?$/i;

/**
 * @param {string} name of the variable, such as BACKEND_URL
 * @returns {string} its URL in the form that everybody is given (internal/plan/url.go): scheme and host in
 *   lower case, without slashes, a question mark or a hash at the end
 */
export function url(name) {
  const text = (env[name] || '').trim();
  if (text === '') {
    throw new Error(`${name} is missing: say which service to test, for example --env ${name}=http://127.0.0.1:8080`);
  }
  if (!/^https?:\/\/[^/?#]/i.test(text)) {
    throw new Error(`${name} is "${text}": it must begin with http:// or https:// and name a host.`);
  }
  const part = SERVICE_URL.exec(text);
  if (!part && /[?#][^?#]|@/.test(text)) {
    throw new Error(`${name} must not carry a query, a fragment or a password; the token goes into BACKEND_TOKEN.`);
  }
  if (!part || /%(?![0-9a-f]{2})/i.test(text)) {
    throw new Error(`${name} is "${text}": it is not a URL of a service, such as http://127.0.0.1:8080.`);
  }
  const [, scheme, host, port, path = ''] = part;
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65535)) {
    throw new Error(`${name} is "${text}": a port is a number from 1 to 65535.`);
  }
  return `${scheme.toLowerCase()}://${host.toLowerCase()}${port === undefined ? '' : `:${Number(port)}`}${path.replace(/\/+$/, '')}`;
}

/** The service of a soak that names none. */
export const NOOP = 'noop';

/** @returns {string} what SERVICE names, or the path of a module */
export function serviceSetting() {
  return env.SERVICE || NOOP;
}

/** @returns {Record<string, string>} the headers that a backend with a token wants */
export function authorization() {
  const token = env.BACKEND_TOKEN || '';
  return token === '' ? {} : { Authorization: `Bearer ${token}` };
}
