// @ts-check
// Tests of report.html. internal/report/browser_test.go writes the pages.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { withUnit } from '../page/theme.js';
import { NARROW, open, overflow, PAGES, violationsOf, WIDE } from './open.js';

/** @import { Page } from 'playwright-core' */

/**
 * Returns the number of pixels in the color of a line, by chart.
 *
 * @param {Page} page
 * @returns {Promise<Record<string, number>>}
 */
function countLinePixels(page) {
  return page.evaluate(() => {
    const style = getComputedStyle(document.documentElement);
    const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const colors = ['line-1', 'line-2', 'line-3', 'line-4'].map((name) => {
      if (!context) {
        throw new Error('no canvas');
      }
      context.fillStyle = style.getPropertyValue(`--${name}`);
      context.fillRect(0, 0, 1, 1);
      return context.getImageData(0, 0, 1, 1).data;
    });
    /** @type {Record<string, number>} */
    const out = {};
    for (const figure of document.querySelectorAll('figure')) {
      const canvas = figure.querySelector('canvas');
      const pixels = canvas?.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? new Uint8ClampedArray();
      let n = 0;
      for (let i = 0; i < pixels.length; i += 4) {
        if (pixels[i + 3] > 60 && colors.some((c) => Math.abs(c[0] - pixels[i]) + Math.abs(c[1] - pixels[i + 1]) + Math.abs(c[2] - pixels[i + 2]) < 30)) {
          n++;
        }
      }
      out[figure.dataset.chart ?? ''] = n;
    }
    return out;
  });
}

/**
 * Returns the times in the legends of all charts over time, in seconds of the day. A legend without a time has NaN.
 *
 * @param {Page} page
 * @returns {Promise<number[]>}
 */
async function legendTimes(page) {
  const texts = await page.locator('.u-legend .u-series:first-child', { hasText: 'UTC' }).locator('.u-value').allTextContents();
  return texts.map((text) => {
    const [h, m, s] = text.split(':').map(Number);
    return h * 3600 + m * 60 + s;
  });
}

/**
 * Moves the cursor into a chart, and returns the times in the legends of all charts.
 *
 * @param {Page} page
 * @param {string} chart
 * @param {number} share of the width of the chart
 */
async function point(page, chart, share) {
  const over = page.locator(`#chart-${chart} .u-over`);
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  assert(box);
  await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
  return legendTimes(page);
}

/**
 * Asserts that each chart has lines.
 *
 * @param {Page} page
 */
async function assertLines(page) {
  for (const [chart, pixels] of Object.entries(await countLinePixels(page))) {
    assert(pixels > 30, `${chart} has ${pixels} pixels of a line's color`);
  }
}

/**
 * Changes the color scheme of the browser, and asserts that the charts follow.
 *
 * @param {Page} page
 * @param {'light' | 'dark'} colorScheme
 */
async function changeTheme(page, colorScheme) {
  await page.emulateMedia({ colorScheme });
  await page.waitForFunction((scheme) => getComputedStyle(document.body).colorScheme.includes(scheme), colorScheme);
  // The charts follow in the next frame. A second read of a canvas would cause a warning.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await assertLines(page);
}

/**
 * Asserts that all charts are drawn and no element is wider than the page.
 *
 * @param {Page} page
 * @param {number} width
 */
async function assertLayout(page, width) {
  const figures = await page.locator('figure').count();
  assert.equal(figures, 15);
  assert.equal(await page.locator('html').getAttribute('data-drawn'), String(figures));
  assert.deepEqual(await overflow(page), { page: width, elements: [] });
}

/**
 * Returns the ids of the first two sections.
 *
 * @param {Page} page
 */
const firstSections = async (page) => (await page.locator('section').evaluateAll((all) => all.map((one) => one.id))).slice(0, 2);

test('the page of a failed run: light, then dark', (t) =>
  open('hour.html', { colorScheme: 'light' }, async (page) => {
    await t.test('starts with the incidents, has every chart, and does not overflow', async () => {
      await assertLayout(page, WIDE.width);
      assert.deepEqual(await firstSections(page), ['story', 'checks']);
    });
    await t.test('is accessible', async () => assert.deepEqual(await violationsOf(page), []));
    await t.test('has one cursor for all charts over time', async () => {
      const times = await point(page, 'lateness', 0.5);
      assert.equal(times.length, 14);
      for (const time of times) {
        assert(Math.abs(time - times[0]) <= 60, `one cursor, but times ${times}`);
      }
    });
    await t.test('zooms and resets all charts together', async () => {
      const [initial] = await point(page, 'connections', 0.1);
      await point(page, 'messages', 0.5);
      await page.mouse.down();
      const box = await page.locator('#chart-messages .u-over').boundingBox();
      assert(box);
      await page.mouse.move(box.x + box.width * 0.75, box.y + box.height / 2, { steps: 5 });
      await page.mouse.up();
      for (const time of await point(page, 'connections', 0.1)) {
        assert(time > initial + 1200, 'the first half of the hour is outside of the charts');
      }
      await page.locator('#chart-messages .u-over').dblclick();
      const [reset] = await point(page, 'connections', 0.1);
      assert(Math.abs(reset - initial) <= 10);
    });
    await t.test('downloads the files', async () => {
      for (const name of ['verdict.json', 'connections.csv', 'series.csv']) {
        const event = page.waitForEvent('download');
        await page.getByRole('button', { name }).click();
        const download = await event;
        assert.equal(download.suggestedFilename(), name);
        assert.equal(await readFile(await download.path(), 'utf8'), await readFile(join(PAGES, name), 'utf8'));
      }
    });
    await t.test('shows the time of a finding, also by keyboard', async () => {
      const link = page.locator('#account a.moment').last();
      const at = Number(await link.getAttribute('data-at'));
      await link.focus();
      await page.keyboard.press('Enter');
      assert.equal(new URL(page.url()).hash, '#timelines');
      const seconds = at % 86400;
      for (const time of await point(page, 'lateness', 0.5)) {
        assert(Math.abs(time - seconds) <= 30, `the middle of the chart is at ${time} s of the day, the finding at ${seconds}`);
      }
      await page.locator('#chart-messages .u-over').dblclick(); // shows the whole run again
    });
    await t.test('follows a change of the theme', () => changeTheme(page, 'dark'));
  }));

test('the page of a failed run on a phone: dark, then light', (t) =>
  open('hour.html', { colorScheme: 'dark', viewport: NARROW }, async (page) => {
    await t.test('has every chart, and does not overflow', () => assertLayout(page, NARROW.width));
    await t.test('does not lay out legends as cards', async () => {
      const displays = await page.locator('.u-legend td').evaluateAll((all) => all.map((one) => getComputedStyle(one).display));
      assert(displays.length > 0);
      assert(!displays.includes('grid'));
    });
    await t.test('is accessible', async () => assert.deepEqual(await violationsOf(page), []));
    await t.test('follows a change of the theme', () => changeTheme(page, 'light'));
  }));

test('the page of a passed run, dark, starts with the timelines', () =>
  open('passed.html', { colorScheme: 'dark' }, async (page) => {
    assert.deepEqual(await firstSections(page), ['timelines', 'checks']);
    await assertLines(page);
    assert.deepEqual(await violationsOf(page, '.banner'), []);
  }));

test('two small values on an axis have different labels', () => {
  assert.deepEqual([withUnit(0.005, 'MiB/s'), withUnit(0.01, 'MiB/s')], ['0.005 MiB/s', '0.01 MiB/s']);
  assert.deepEqual([withUnit(12.34, 'MiB'), withUnit(1234.4, 'ms'), withUnit(1234.4, '')], ['12.3 MiB', '1.23 s', '1,234']);
});

test('markup of the service has no effect', () => open('evil.html', {}, async (page) => assert.equal(await page.locator('img').count(), 0)));

test('a run of 72 hours is drawn', (t) =>
  open('days.html', {}, async (page) => {
    const times = [];
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await page.reload();
      await page.waitForSelector('[data-drawn]');
      times.push(await page.evaluate(() => performance.getEntriesByName('drawn')[0].startTime));
    }
    t.diagnostic(`opened from disk and drawn in ${times.map(Math.round).join(', ')} ms`);
    assert(Math.min(...times) < 2000, 'the fastest of three, because other tests may use the cores');
    await assertLines(page);
  }));

test('a run without data has no charts and no errors', () =>
  open('nothing.html', {}, async (page) => assert.equal(await page.locator('figure').count(), 0)));
