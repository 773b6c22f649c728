// @ts-check
// Files that the page carries.

const types = /** @type {Record<string, string>} */ ({ json: 'application/json', csv: 'text/csv' });

/**
 * Unpacks a file and hands it to the browser to save.
 *
 * @param {string} name
 * @param {string} packed gzip in base64
 */
export async function download(name, packed) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const type = types[name.split('.').pop() ?? ''] ?? 'application/octet-stream';
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([await new Response(unpacked).arrayBuffer()], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
