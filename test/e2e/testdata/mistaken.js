// @ts-check

/** A description with an unknown placeholder. @type {import('../../../load-tests/types/service').ServiceDescription} */
export default {
  name: 'mistaken',
  connect: { url: '{base}/sub/{tpoic}' },
  message: 'unchecked',
};
