// @ts-check

/** A description with a placeholder that nothing fills. @type {import('../../../load-tests/types/service').ServiceDescription} */
export default {
  name: 'mistaken',
  connect: { url: '{base}/sub/{tpoic}' },
  message: 'unchecked',
};
