// @ts-check
// Downloads of the files that the page contains.

const types = /** @type {Record<string, string>} */ ({ json: 'application/json', csv: 'text/csv' });

/**
 * Decompresses a file and lets the browser save it.
 *
 * @param {string} name
 * @param {string} compressed gzip in base64
 */
export async function download(name, compressed) {
  const bytes = Uint8Array.from(atob(compressed), (c) => c.charCodeAt(0));
  const decompressed = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const type = types[name.split('.').pop() ?? ''] ?? 'application/octet-stream';
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([await new Response(decompressed).arrayBuffer()], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
