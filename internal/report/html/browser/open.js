// @ts-check
// Opens pages from disk, with the network off, in a real browser. A Go test writes the pages, and runs the tests with
// PAGES, their folder, and CHROMIUM.
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
 * Opens a page, hands it to use, and holds that it said nothing and asked for nothing meanwhile.
 *
 * @param {string} name
 * @param {{ colorScheme?: 'light' | 'dark', viewport?: { width: number, height: number } }} look
 * @param {(page: Page) => Promise<void>} use
 */
export async function open(name, look, use) {
  const context = await browser.newContext({ viewport: WIDE, ...look, offline: true });
  const page = await context.newPage();
  /** @type {string[]} */
  const said = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  page.on('dialog', (dialog) => said.push(dialog.message()));
  page.on('request', (request) => {
    if (!request.isNavigationRequest() && !request.url().startsWith('blob:')) {
      said.push(request.url());
    }
  });
  try {
    await page.goto(pathToFileURL(join(PAGES, name)).href);
    await use(page);
    assert.deepEqual(said, [], 'the console is silent, and nothing is loaded');
  } finally {
    await context.close();
  }
}

/**
 * What is wider than the page.
 *
 * @param {Page} page
 */
export function wider(page) {
  return page.evaluate(() => ({
    page: document.documentElement.scrollWidth,
    elements: [...document.querySelectorAll('main *')]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
      .map((e) => `${e.tagName}.${e.getAttribute('class')}`),
  }));
}

/**
 * What hinders who cannot see the page, or has no mouse.
 *
 * @param {Page} page
 * @returns {Promise<string[]>}
 */
export async function hindrances(page) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => /** @type {any} */ (window).axe.run());
  return violations.map((/** @type {import('axe-core').Result} */ v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html).join(' ')}`);
}
