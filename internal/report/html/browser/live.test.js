// @ts-check
// Tests the page of a run in progress in a real browser. internal/run/live/browser_test.go advances the run and controls the network
// by requests to DIRECTOR: /advance is ten seconds of the run, /disconnect and /restore change the network, /finish shows the
// report. PAGE is the page behind that network, DIRECT the same page without it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { chromium } from 'playwright-core';

import { hindrances, wider } from './open.js';

/** @import { Browser, Page } from 'playwright-core' */

const { CHROMIUM = '', DIRECTOR = '', PAGE = '', DIRECT = '' } = process.env;

/** @type {Browser} */
let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM });
});
after(() => browser.close());

/** @param {string} what */
const direct = async (what) => assert((await fetch(`${DIRECTOR}/${what}`)).ok);

/**
 * Opens the page. What it says on the console, but for requests that a cut network did not bring, is collected.
 *
 * @param {string} url
 * @param {import('playwright-core').BrowserContextOptions} [look]
 */
async function open(url, look) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...look });
  const page = await context.newPage();
  /** @type {string[]} */
  const said = [];
  page.on('console', (message) => message.text().includes('net::') || said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  page.on('dialog', (dialog) => said.push(dialog.message()));
  await page.goto(url);
  return { context, page, said };
}

/**
 * All that the page shows: its words, and its charts point by point. Legends show the value under a cursor, of which there is none.
 *
 * @param {Page} page
 */
function shown(page) {
  return page.evaluate(() => ({
    words: [...document.querySelectorAll('#now, #tiles, #found, #runners')].map((e) => e.textContent?.replace(/\s+/g, ' ')),
    charts: Object.fromEntries([...document.querySelectorAll('figure')].map((f) => [f.id, f.querySelector('canvas')?.toDataURL()])),
    labels: [...document.querySelectorAll('canvas')].map((c) => c.getAttribute('aria-label')),
  }));
}

/**
 * Waits until a page shows the same as one that was opened just now, and returns that.
 *
 * @param {Page} page
 * @param {import('playwright-core').BrowserContextOptions} [look]
 * @param {(content: Awaited<ReturnType<typeof shown>>) => unknown} [compared] the part of the content that must be the same
 */
async function isWhole(page, look, compared = (content) => content) {
  const { context, page: fresh } = await open(DIRECT, look);
  const want = await shown(fresh);
  await context.close();
  let last;
  for (const until = Date.now() + 60_000; Date.now() < until;) {
    last = compared(await shown(page));
    if (JSON.stringify(last) === JSON.stringify(compared(want))) {
      return want;
    }
    await page.waitForTimeout(100);
  }
  assert.deepEqual(last, compared(want));
  return want;
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  for (const viewport of [{ width: 1280, height: 900 }, { width: 400, height: 800 }]) {
    test(`charts grow and nothing overflows: ${colorScheme}, ${viewport.width} px`, async () => {
      const look = { colorScheme, viewport };
      const { context, page, said } = await open(DIRECT, look);
      await direct('advance');
      await page.waitForSelector('figure canvas');
      await isWhole(page, look);
      await direct('advance');
      const { charts } = await isWhole(page, look);
      assert(Object.keys(charts).length >= 8, Object.keys(charts).join(' '));
      assert.deepEqual(await wider(page), { page: viewport.width, elements: [] });
      assert.deepEqual(await hindrances(page), []);
      assert.deepEqual(said, []);
      await context.close();
    });
  }
}

test('a finding leads to its moment, also one that came just now', async () => {
  const { context, page } = await open(DIRECT);
  await direct('advance');
  await isWhole(page);
  const link = page.locator('#found a.moment').first();
  const at = Number(await link.getAttribute('data-at'));
  await link.focus();
  await page.keyboard.press('Enter');
  const over = page.locator('#chart-connections .u-over');
  const box = await over.boundingBox();
  assert(box);
  await page.mouse.move(box.x + 2, box.y + 50);
  const [h, m, second] = (await page.locator('#chart-connections .u-legend .u-series:first-child .u-value').innerText()).split(':').map(Number);
  assert(Math.abs(h * 3600 + m * 60 + second - ((at - 60) % 86400)) <= 10, `the charts begin at ${h}:${m}:${second}, a minute before ${at}`);
  await context.close();
});

test('a chart that is zoomed stays so while points come', async () => {
  const { context, page } = await open(DIRECT);
  await direct('advance');
  await isWhole(page); // new findings move the chart
  const over = page.locator('#chart-connections .u-over');
  /** @param {number} share of the width */
  const point = async (share) => {
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    assert(box);
    await page.mouse.move(box.x + box.width * share, box.y + 50, { steps: 5 });
  };
  /** @returns {Promise<string>} the time in the middle of the chart */
  const middle = async () => {
    await point(0.5);
    return page.locator('#chart-connections .u-legend .u-series:first-child .u-value').innerText();
  };
  const whole = await middle();
  await point(0.2);
  await page.mouse.down();
  await point(0.6);
  await page.mouse.up();
  const zoomed = await middle();
  assert.notEqual(zoomed, whole);
  await direct('advance');
  await isWhole(page, undefined, ({ words }) => words);
  assert.equal(await middle(), zoomed);
  await over.dblclick();
  assert.notEqual(await middle(), zoomed);
  await context.close();
});

test('the page follows the run, also after its network was cut, and becomes the report', async () => {
  const { context, page, said } = await open(PAGE);
  await direct('advance');
  await page.waitForSelector('figure canvas');
  await isWhole(page);
  assert.match(await page.locator('#now').innerText(), /RUNNING[\s\S]*nothing lost yet/);
  assert.equal(await page.locator('img').count(), 0, 'what comes from outside is text');

  await direct('disconnect');
  await direct('advance');
  await page.getByRole('status').filter({ hasText: /No news for \d+ s: trying again/ }).waitFor({ timeout: 60_000 });
  await direct('advance');
  await direct('restore');
  await direct('advance');
  const whole = await isWhole(page);
  assert.match(whole.words.join(' '), /soak-\d+[\s\S]*soak-25[\s\S]*soak-15[\s\S]*soak-5</, 'from the first finding to the last');
  assert.equal(await page.getByRole('status').isVisible(), false);

  await direct('disconnect'); // over the end of the run
  await direct('finish');
  await page.getByRole('status').filter({ hasText: /No news/ }).waitFor({ timeout: 60_000 });
  await direct('restore');
  await page.waitForFunction(() => document.title === 'soak t pass', undefined, { timeout: 60_000 });
  assert.deepEqual(said, []);
  await context.close();
});
