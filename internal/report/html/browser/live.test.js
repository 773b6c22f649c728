// @ts-check
// Tests of the page of a run in progress. DIRECTOR is the address of a server in internal/run/live/browser_test.go that
// controls the run and a network. /advance adds ten seconds to the run, /disconnect and /restore change the network, and
// /finish ends the run. PAGE is the address of the page through that network, DIRECT the address without it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { NARROW, overflow, violationsOf, visit, WIDE } from './open.js';

/** @import { Page } from 'playwright-core' */

const { DIRECTOR = '', PAGE = '', DIRECT = '' } = process.env;

/**
 * Sends a command to DIRECTOR.
 *
 * @param {string} command
 */
const sendCommand = async (command) => assert((await fetch(`${DIRECTOR}/${command}`)).ok);

/**
 * Returns the content of the page: texts, pixels of the charts, and their descriptions. Legends depend on the cursor, so they
 * are not included.
 *
 * @param {Page} page
 */
function contentOf(page) {
  return page.evaluate(() => ({
    texts: [...document.querySelectorAll('#now, #tiles, #findings, #runners')].map((e) => e.textContent?.replace(/\s+/g, ' ')),
    charts: Object.fromEntries([...document.querySelectorAll('figure')].map((f) => [f.id, f.querySelector('canvas')?.toDataURL()])),
    labels: [...document.querySelectorAll('canvas')].map((c) => c.getAttribute('aria-label')),
  }));
}

/**
 * Waits until a page has the same content as a newly opened one, and returns that content.
 *
 * @param {Page} page
 * @param {import('playwright-core').BrowserContextOptions} [look]
 * @param {(content: Awaited<ReturnType<typeof contentOf>>) => unknown} [part] selects the part of the content to compare
 */
async function awaitCurrentContent(page, look, part = (content) => content) {
  const { context, page: newPage } = await visit(DIRECT, look);
  const want = await contentOf(newPage);
  await context.close();
  let last;
  for (const until = Date.now() + 60_000; Date.now() < until;) {
    last = part(await contentOf(page));
    if (JSON.stringify(last) === JSON.stringify(part(want))) {
      return want;
    }
    await page.waitForTimeout(100);
  }
  assert.deepEqual(last, part(want));
  return want;
}

for (const look of /** @type {const} */ ([{ colorScheme: 'light', viewport: WIDE }, { colorScheme: 'dark', viewport: NARROW }])) {
  test(`charts grow, and no element overflows: ${look.colorScheme}, ${look.viewport.width} px`, async () => {
    const { context, page, problems } = await visit(DIRECT, look);
    await sendCommand('advance');
    await page.waitForSelector('figure canvas');
    await sendCommand('advance');
    const { charts } = await awaitCurrentContent(page, look);
    assert(Object.keys(charts).length >= 8, Object.keys(charts).join(' '));
    assert.deepEqual(await overflow(page), { page: look.viewport.width, elements: [] });
    assert.deepEqual(await violationsOf(page), []);
    assert.deepEqual(problems, []);
    await context.close();
  });
}

test('a zoomed chart keeps its range when points arrive, and a new finding links to its time', async () => {
  const { context, page } = await visit(DIRECT);
  await sendCommand('advance');
  await awaitCurrentContent(page); // new findings move the chart
  const over = page.locator('#chart-connections .u-over');
  /** @param {number} share of the width */
  const point = async (share) => {
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    assert(box);
    await page.mouse.move(box.x + 2 + (box.width - 2) * share, box.y + 50, { steps: 5 });
  };
  /** @returns {Promise<string>} the time in the middle of the chart */
  const middle = async () => {
    await point(0.5);
    return page.locator('#chart-connections .u-legend .u-series:first-child .u-value').innerText();
  };
  const fullRangeMiddle = await middle();
  await point(0.2);
  await page.mouse.down();
  await point(0.6);
  await page.mouse.up();
  const zoomedMiddle = await middle();
  assert.notEqual(zoomedMiddle, fullRangeMiddle);
  await sendCommand('advance');
  await awaitCurrentContent(page, undefined, ({ texts }) => texts);
  assert.equal(await middle(), zoomedMiddle);
  await over.dblclick();
  assert.notEqual(await middle(), zoomedMiddle);

  const link = page.locator('#findings a.moment').first();
  const at = Number(await link.getAttribute('data-at'));
  await link.focus();
  await page.keyboard.press('Enter');
  await point(0);
  const [h, m, second] = (await page.locator('#chart-connections .u-legend .u-series:first-child .u-value').innerText()).split(':').map(Number);
  assert(Math.abs(h * 3600 + m * 60 + second - ((at - 60) % 86400)) <= 10, `the charts start at ${h}:${m}:${second}, a minute before ${at}`);
  await context.close();
});

test('the page follows the run, also after a network failure, and loads the report', async () => {
  const { context, page, problems } = await visit(PAGE);
  await sendCommand('advance');
  await page.waitForSelector('figure canvas');
  await awaitCurrentContent(page);
  assert.match(await page.locator('#now').innerText(), /RUNNING[\s\S]*nothing lost yet/);
  assert.equal(await page.locator('img').count(), 0, 'markup of the service is displayed as text');

  await sendCommand('disconnect');
  await sendCommand('advance');
  await page.getByRole('status').filter({ hasText: /No data for \d+ s; reconnecting/ }).waitFor({ timeout: 60_000 });
  await sendCommand('advance');
  await sendCommand('restore');
  await sendCommand('advance');
  const content = await awaitCurrentContent(page);
  assert.match(content.texts.join(' '), /soak-\d+[\s\S]*soak-25[\s\S]*soak-15[\s\S]*soak-5</, 'from the first finding to the last');
  assert.equal(await page.getByRole('status').isVisible(), false);

  await sendCommand('disconnect'); // until after the end of the run
  await sendCommand('finish');
  await page.getByRole('status').filter({ hasText: /No data/ }).waitFor({ timeout: 60_000 });
  await sendCommand('restore');
  await page.waitForFunction(() => document.title === 'soak t pass', undefined, { timeout: 60_000 });
  assert.deepEqual(problems, []);
  await context.close();
});
