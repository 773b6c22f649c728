#!/usr/bin/env node
// @ts-check
// Records a command in a terminal as an animated SVG: script(1) records the output, and svg-term draws it.
//
//   node tools/recording/record.js OUT.svg COMMAND ARGUMENT…
//
// The animation shows the output at the time at which it was written. Pauses of over a second are shortened, and a long
// text that was written at once appears line by line. CONTRIBUTING.md has the command of docs/recording.svg.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const WIDTH = 92;
const HEIGHT = 30;
const MAX_PAUSE = 1; // seconds
const END_PAUSE = 6; // seconds at the end
const LINE_PAUSE = 0.12; // seconds per line of a long text that was written at once

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
  if (run.error) {
    throw run.error;
  }
  if (run.status !== 0) {
    throw new Error(`${command.join(' ')} exited with ${run.status}; record a command that succeeds`);
  }
  writeFileSync(cast, asciicast(readFileSync(log), readFileSync(timing, 'utf8')));
  execFileSync('npx', ['--yes', 'svg-term-cli@2.1.1', '--in', cast, '--out', out, '--window', '--no-cursor', '--width', String(WIDTH), '--height', String(HEIGHT)], { stdio: ['ignore', 'inherit', 'inherit'] });
} finally {
  rmSync(folder, { recursive: true });
}

/**
 * Returns the recording in the format asciicast v2: the command, as typed letters, and its output.
 *
 * @param {Buffer} log output of script, which adds a line at the start and at the end
 * @param {string} timing lines with the seconds since the last output, and the length of the output in bytes
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
    at += Math.min(wait, MAX_PAUSE);
    const text = log.subarray(from, from + length).toString();
    const lines = text.split(/(?<=\n)/);
    for (const line of lines) {
      events.push([at, 'o', line]);
      at += lines.length > HEIGHT / 2 ? LINE_PAUSE : 0;
    }
    from += length;
  }
  events.push([at + END_PAUSE, 'o', '']);
  return [{ version: 2, width: WIDTH, height: HEIGHT }, ...events].map((event) => JSON.stringify(event)).join('\n');
}
