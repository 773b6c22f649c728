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
  return text === undefined || text === '' ? fallback : parsed(name, text);
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
    const value = parsed(name, part);
    if (!Number.isInteger(value) || value < 1) {
      throw new Error(`${name} is "${text}": it must be whole numbers over 0 with commas between, such as 20,50,100.`);
    }
    return value;
  });
}

/**
 * @param {string} name
 * @param {string} text
 * @returns {number}
 */
function parsed(name, text) {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) {
    throw new Error(`${name} is "${env[name]}": it must be a number.`);
  }
  return value;
}

/**
 * @param {string} name of the variable, such as BACKEND_URL
 * @returns {string} its URL without a slash at the end
 */
export function url(name) {
  const text = (env[name] || '').replace(/\/+$/, '');
  if (text === '') {
    throw new Error(`${name} is missing: say which service to test, for example --env ${name}=http://127.0.0.1:8080`);
  }
  if (!/^https?:\/\/[^/?#\s]+/.test(text)) {
    throw new Error(`${name} is "${text}": it must begin with http:// or https:// and name a host.`);
  }
  return text;
}

/** @returns {Record<string, string>} the headers that a backend with a token wants */
export function authorization() {
  const token = env.BACKEND_TOKEN || '';
  return token === '' ? {} : { Authorization: `Bearer ${token}` };
}
