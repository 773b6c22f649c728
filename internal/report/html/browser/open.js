// @ts-check
// Opens pages in a browser; pages from disk have no network. A Go test writes the pages and runs the tests. PAGES is the
// folder of the pages, CHROMIUM the program of the browser.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { pathToFileURL } from 'node:url';

import axe from 'axe-core';
import { chromium } from 'playwright-core';

/** @import { Browser, Page } from 'playwright-core' */

export const { PAGES = '', CHROMIUM = '' } = process.env;

export const WIDE = { width: 1280, height: 900 };
export const NARROW = { width: 400, height: 800 };

/** @type {Browser} */
let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM });
});
after(() => browser.close());

/**
 * Opens an address in a new context, and collects problems: console messages, errors, dialogs, and requests of a page from
 * disk. The caller closes the context.
 *
 * @param {string} url
 * @param {import('playwright-core').BrowserContextOptions} [look]
 */
export async function visit(url, look) {
  const context = await browser.newContext({ viewport: WIDE, ...look });
  const page = await context.newPage();
  /** @type {string[]} */
  const problems = [];
  page.on('console', (message) => message.text().includes('net::') || problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('dialog', (dialog) => problems.push(dialog.message()));
  page.on('request', (request) => {
    if (url.startsWith('file:') && !request.isNavigationRequest() && !request.url().startsWith('blob:')) {
      problems.push(request.url());
    }
  });
  await page.goto(url);
  return { context, page, problems };
}

/**
 * Opens a page from disk, calls use, and asserts that the page wrote nothing to the console and loaded nothing.
 *
 * @param {string} name
 * @param {{ colorScheme?: 'light' | 'dark', viewport?: { width: number, height: number } }} look
 * @param {(page: Page) => Promise<void>} use
 */
export async function open(name, look, use) {
  const { context, page, problems } = await visit(pathToFileURL(join(PAGES, name)).href, { ...look, offline: true });
  try {
    await use(page);
    assert.deepEqual(problems, [], 'the page writes nothing to the console, and loads nothing');
  } finally {
    await context.close();
  }
}

/**
 * Returns the width of the page, and the elements that reach beyond it.
 *
 * @param {Page} page
 */
export function overflow(page) {
  return page.evaluate(() => ({
    page: document.documentElement.scrollWidth,
    elements: [...document.querySelectorAll('main *')]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
      .map((e) => `${e.tagName}.${e.getAttribute('class')}`),
  }));
}

/**
 * Returns the violations of accessibility rules that axe finds in the elements of a selector.
 *
 * @param {Page} page
 * @param {string} [selector]
 * @returns {Promise<string[]>}
 */
export async function violationsOf(page, selector = 'html') {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate((part) => /** @type {any} */ (window).axe.run(part, { resultTypes: ['violations'] }), selector);
  return violations.map((/** @type {import('axe-core').Result} */ v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html).join(' ')}`);
}
