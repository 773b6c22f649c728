// @ts-check
// Tests of index.html, the page of all runs. internal/results/browser_test.go writes it.
import assert from 'node:assert/strict';
import { basename } from 'node:path';
import { test } from 'node:test';

import { NARROW, open, overflow, violationsOf, WIDE } from './open.js';

/** @import { Page } from 'playwright-core' */

/**
 * Returns the color of a custom property of the page as the browser computes it.
 *
 * @param {Page} page
 * @param {string} name
 */
function color(page, name) {
  return page.evaluate((property) => {
    const context = document.createElement('canvas').getContext('2d');
    if (!context) {
      throw new Error('no canvas');
    }
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(property);
    const [, r, g, b] = /^#(..)(..)(..)$/.exec(String(context.fillStyle)) ?? [];
    return `rgb(${[r, g, b].map((hex) => parseInt(hex, 16)).join(', ')})`;
  }, `--${name}`);
}

test('the page of all runs', (t) =>
  open('index.html', {}, async (page) => {
    const index = page.url();
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      await page.emulateMedia({ colorScheme });
      await t.test(`has the colors of the theme: ${colorScheme}`, async () => {
        const bar = page.locator('#plan-1 .spark i').first();
        assert.equal(await bar.evaluate((e) => getComputedStyle(e).color), await color(page, 'line-1'));
        const regression = page.locator('#plan-1 .spark i.bad').first();
        assert.equal(await regression.evaluate((e) => getComputedStyle(e).color), await color(page, 'bad'));
        assert.equal(await page.locator('td.bad', { hasText: 'regression' }).first().evaluate((e) => getComputedStyle(e).color), await color(page, 'bad'));
        const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(background, await color(page, 'back'));
        assert.equal(background === 'rgb(14, 17, 22)', colorScheme === 'dark');
      });
      const viewport = colorScheme === 'light' ? WIDE : NARROW;
      await page.setViewportSize(viewport);
      await t.test(`has all runs, does not overflow and is accessible: ${colorScheme}, ${viewport.width} px`, async () => {
        assert.equal(await page.locator('#runs tbody tr').count(), 9);
        assert.deepEqual(await overflow(page), { page: viewport.width, elements: [] });
        const bars = await page.locator('.spark').evaluateAll((all) => all.map((one) => one.getBoundingClientRect()));
        assert(bars.every(({ width, height }) => width > 10 && height > 20), 'the bars are visible');
        assert.deepEqual(await violationsOf(page), []);
      });
    }
    await t.test('bars have a description for screen readers', async () =>
      assert(await page.getByRole('img', { name: /^lateness p99 over \d+ runs, from / }).first().isVisible()));
    await t.test('a plan links to its metrics', async () => {
      await page.locator('#runs a[href="#plan-1"]').first().click();
      const box = await page.locator('#plan-1').boundingBox();
      assert(box && box.y >= 0 && box.y < NARROW.height, 'the metrics are visible');
    });
    await t.test('a run links to its report, for mouse and keyboard', async () => {
      await page.locator('#runs a', { hasText: 'run-001' }).click();
      assert.equal(basename(page.url()), 'report.html');
      await page.goto(index);
      await page.locator('#runs a', { hasText: 'run-001' }).focus();
      await page.keyboard.press('Enter');
      await page.waitForURL(/run-001.report\.html$/);
    });
  }));

test('a page of a hundred runs opens', () =>
  open('many/index.html', { viewport: NARROW }, async (page) => {
    assert.equal(await page.locator('#runs tbody tr').count(), 100);
    assert.deepEqual(await overflow(page), { page: NARROW.width, elements: [] });
  }));

test('a folder without runs has a page', () =>
  open('none/index.html', {}, async (page) => assert(await page.getByText('No runs yet').isVisible())));
