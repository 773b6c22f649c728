// @ts-check
// The service of service.js, with messages that carry no number and are not published by the run: clients are compared with each other.

import bench from './service.js';

const { publish: _, ...subscribed } = bench;

/** @type {import('../../load-tests/types/service').ServiceDescription} */
export default { ...subscribed, message: { same: 'data' } };
