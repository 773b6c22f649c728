// @ts-check
// Tests of index.html, the page of all runs: internal/results/browser_test.go writes it.
import assert from 'node:assert/strict';
import { basename } from 'node:path';
import { test } from 'node:test';

import { hindrances, NARROW, open, WIDE, wider } from './open.js';

/** @import { Page } from 'playwright-core' */

/**
 * The colour that a custom property of the page's style stands for.
 *
 * @param {Page} page
 * @param {string} name
 */
function colour(page, name) {
  return page.evaluate((property) => {
    const probe = document.createElement('canvas').getContext('2d');
    if (!probe) {
      throw new Error('no canvas');
    }
    probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(property);
    const [, r, g, b] = /^#(..)(..)(..)$/.exec(String(probe.fillStyle)) ?? [];
    return `rgb(${[r, g, b].map((hex) => parseInt(hex, 16)).join(', ')})`;
  }, `--${name}`);
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  for (const viewport of [WIDE, NARROW]) {
    test(`all runs are there, and nothing overflows: ${colorScheme}, ${viewport.width} px`, () =>
      open('index.html', { colorScheme, viewport }, async (page) => {
        assert.equal(await page.locator('#runs tbody tr').count(), 9);
        assert.deepEqual(await wider(page), { page: viewport.width, elements: [] });
        for (const spark of await page.locator('.spark').all()) {
          const box = await spark.boundingBox();
          assert(box && box.width > 10 && box.height > 20, 'the bars have room');
        }
        const bar = page.locator('#plan-1 .spark i').first();
        assert.equal(await bar.evaluate((e) => getComputedStyle(e).color), await colour(page, 'line-1'));
        const regression = page.locator('#plan-1 .spark i.bad').first();
        assert.equal(await regression.evaluate((e) => getComputedStyle(e).color), await colour(page, 'bad'));
        assert.equal(await page.locator('td.bad', { hasText: 'regression' }).first().evaluate((e) => getComputedStyle(e).color), await colour(page, 'bad'));
        const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(back, await colour(page, 'back'));
        assert.equal(back === 'rgb(14, 17, 22)', colorScheme === 'dark');
        assert.deepEqual(await hindrances(page), []);
      }));
  }
}

test('a run leads to its report, by mouse and by keyboard', () =>
  open('index.html', {}, async (page) => {
    const index = page.url();
    await page.locator('#runs a', { hasText: 'run-001' }).click();
    assert.equal(basename(page.url()), 'report.html');
    await page.goto(index);
    await page.locator('#runs a', { hasText: 'run-001' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/run-001.report\.html$/);
  }));

test('a plan leads to its metrics', () =>
  open('index.html', { viewport: NARROW }, async (page) => {
    await page.locator('#runs a[href="#plan-1"]').first().click();
    const box = await page.locator('#plan-1').boundingBox();
    assert(box && box.y >= 0 && box.y < NARROW.height, 'it is in sight');
  }));

test('bars have a name for screen readers', () =>
  open('index.html', {}, async (page) => assert(await page.getByRole('img', { name: /^lateness p99 over \d+ runs, from / }).first().isVisible())));

test('a hundred runs are a page that opens', () =>
  open('many/index.html', { viewport: NARROW }, async (page) => {
    assert.equal(await page.locator('#runs tbody tr').count(), 100);
    assert.deepEqual(await wider(page), { page: NARROW.width, elements: [] });
  }));

test('a folder without runs has a page', () =>
  open('none/index.html', {}, async (page) => assert(await page.getByText('No runs yet').isVisible())));
