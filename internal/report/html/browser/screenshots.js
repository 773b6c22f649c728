// @ts-check
// Takes the screenshots of docs/report.md: node screenshots.js REPORT.html FOLDER [PREFIX]. With PREFIX, it takes only the
// top of the report, and each file name starts with PREFIX. REPORT.html may also be the address of a run in progress.
// CHROMIUM is the program of the browser.
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { chromium } from 'playwright-core';

const [report, folder, prefix = ''] = process.argv.slice(2);
const live = report.startsWith('http:');
const address = live ? report : pathToFileURL(resolve(report)).href;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium' });
for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 960 }, colorScheme });
  await page.goto(address);
  await page.waitForSelector('[data-drawn]');
  await page.screenshot({ path: join(folder, `${prefix}${colorScheme}.png`) });
  if (prefix) {
    await page.close();
    continue;
  }
  await page.evaluate(() => document.getElementById('timelines')?.scrollIntoView());
  const cursor = await page.locator('#chart-lateness .u-over').boundingBox();
  if (cursor) {
    await page.mouse.move(cursor.x + cursor.width * 0.6, cursor.y + cursor.height / 2);
  }
  await page.screenshot({ path: join(folder, `timelines-${colorScheme}.png`) });
  await page.close();
}
const phone = await browser.newPage({ viewport: { width: 400, height: 800 } });
await phone.goto(address);
await phone.waitForSelector('[data-drawn]');
await phone.screenshot({ path: join(folder, `${prefix}narrow.png`) });

// The page of all runs is in the parent of the folder of the run.
const history = pathToFileURL(join(dirname(dirname(resolve(report))), 'index.html')).href;
for (const [name, width, colorScheme, section] of live || prefix ? [] : /** @type {const} */ ([['history-light', 1280, 'light', 'top'], ['history-narrow', 400, 'dark', 'plans']])) {
  const page = await browser.newPage({ viewport: { width, height: 960 }, colorScheme });
  await page.goto(`${history}#${section}`);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await page.close();
}
await browser.close();
