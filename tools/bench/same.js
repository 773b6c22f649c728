// @ts-check
// The service of service.js, with messages that carry no number and are not published by the run: clients are compared with each other.

import bench from './service.js';

/** @type {import('../../load-tests/types/service').ServiceDescription} */
const subscribed = { ...bench, message: { same: 'data' } };
delete subscribed.publish;

export default subscribed;
