// @ts-check
// The service of service.js, with messages that have no number and that the run does not publish. The run compares clients
// with each other.

import bench from './service.js';

/** @type {import('../../load-tests/types/service').ServiceDescription} */
const feed = { ...bench, message: { same: 'data' } };
delete feed.publish;

export default feed;
