// @ts-check
// Links to a time of the run. A click zooms all charts over time to the linked time, and a line marks that time.

/** Seconds before and after the linked time that the charts show. */
const MARGIN = 60;

/**
 * Handles clicks on the links to times, including those that a run in progress adds later.
 *
 * @param {() => import('uplot')[]} plots returns the charts over time
 * @param {import('./page.types.js').Time} time
 */
export function linkMoments(plots, time) {
  document.addEventListener('click', (event) => {
    const link = /** @type {Element} */ (event.target).closest('a.moment');
    if (link) {
      show(plots(), time, Number(/** @type {HTMLElement} */ (link).dataset.at));
    }
  });
}

/**
 * Zooms the charts to a time.
 *
 * @param {import('uplot')[]} plots
 * @param {import('./page.types.js').Time} time
 * @param {number} at
 */
function show(plots, time, at) {
  const end = time.from + (time.n - 1) * time.step;
  time.moment = at;
  for (const plot of plots) {
    plot.setScale('x', { min: Math.max(at - MARGIN, time.from), max: Math.min(at + MARGIN, end) });
  }
}
