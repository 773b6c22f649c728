#!/usr/bin/env node
// @ts-check
// Records a run in a terminal, and draws it as an SVG that moves: node tools/recording/record.js docs/recording.svg bin/soak run --connections 1000 --seconds 40 --noop-interval 1 --progress full. The run is a real one; what is drawn is what it
// wrote, at the time at which it wrote it; but pauses of over a second
// are shortened, and the verdict comes line by line.
//
//   node record.js OUT.svg COMMAND ARGUMENT…
//
// script(1) records, svg-term draws.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const WIDTH = 92;
const HEIGHT = 30;
const LONGEST_PAUSE = 1; // seconds
const LAST_PICTURE = 6; // seconds for which the end stays
const PER_LINE = 0.12; // seconds per line of a text that appears at once, so that a reader can follow

const [out, ...command] = process.argv.slice(2);
if (command.length === 0) {
  console.error('record.js: usage: node record.js OUT.svg COMMAND ARGUMENT…');
  process.exit(64);
}
const folder = mkdtempSync(join(tmpdir(), 'recording-'));
try {
  const [log, timing, cast] = ['log', 'timing', 'cast'].map((name) => join(folder, name));
  const line = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const run = spawnSync('script', ['--quiet', '--return', '--log-out', log, '--log-timing', timing, '--command', `stty cols ${WIDTH} rows ${HEIGHT}; ${line}`], { stdio: 'inherit', env: { ...process.env, TERM: 'xterm-256color' } });
  if (run.status !== 0) {
    throw new Error(`${command.join(' ')} ended with ${run.status}: only a run that passes is recorded`);
  }
  writeFileSync(cast, asciicast(readFileSync(log), readFileSync(timing, 'utf8')));
  execFileSync('npx', ['--yes', 'svg-term-cli@2.1.1', '--in', cast, '--out', out, '--window', '--no-cursor', '--width', String(WIDTH), '--height', String(HEIGHT)], { stdio: ['ignore', 'inherit', 'inherit'] });
} finally {
  rmSync(folder, { recursive: true });
}

/**
 * The recording as asciinema has it (asciicast v2): the command as somebody types it, then what came, and when.
 *
 * @param {Buffer} log what script wrote, with a line of its own above and below
 * @param {string} timing seconds since the last output and its length in bytes, in each line
 */
function asciicast(log, timing) {
  const prompt = '\u001b[1m$\u001b[0m ';
  /** @type {[number, 'o', string][]} */
  const events = [[0, 'o', prompt]];
  let at = 0.6;
  for (const letter of command.join(' ').replace(/^.*\/bin\//, 'bin/')) {
    events.push([at, 'o', letter]);
    at += 0.03;
  }
  events.push([at, 'o', '\r\n']);
  let from = log.indexOf('\n') + 1;
  for (const row of timing.trim().split('\n')) {
    const [wait, length] = row.split(' ').map(Number);
    at += Math.min(wait, LONGEST_PAUSE);
    const text = log.subarray(from, from + length).toString();
    const lines = text.split(/(?<=\n)/);
    for (const line of lines) {
      events.push([at, 'o', line]);
      at += lines.length > HEIGHT / 2 ? PER_LINE : 0;
    }
    from += length;
  }
  events.push([at + LAST_PICTURE, 'o', '']);
  return [{ version: 2, width: WIDTH, height: HEIGHT }, ...events].map((one) => JSON.stringify(one)).join('\n');
}
