// @ts-check
// A link to a moment: all charts over time show what was around it, and a line is where it was.

/** How much of the run is shown on either side of a moment, in seconds. */
const AROUND = 60;

/**
 * Also links that come later lead there: those of a run that goes on.
 *
 * @param {() => import('uplot')[]} plots those over time
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
 * @param {import('uplot')[]} plots
 * @param {import('./page.types.js').Time} time
 * @param {number} at
 */
function show(plots, time, at) {
  const end = time.from + (time.n - 1) * time.step;
  time.moment = at;
  for (const plot of plots) {
    plot.setScale('x', { min: Math.max(at - AROUND, time.from), max: Math.min(at + AROUND, end) });
  }
}
