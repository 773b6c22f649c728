// @ts-check
// The soak over TLS with a client certificate. CERTS is a folder that infra/compose/certs created.

import { options as soakOptions } from '../../load-tests/sse/connectionTest.js';

export { default, setup } from '../../load-tests/sse/connectionTest.js';

const client = `${__ENV.CERTS}/clients/client-1`;

export const options = {
  ...soakOptions,
  hosts: { localhost: __ENV.CONNECT_TO },
  tlsAuth: [{ cert: open(`${client}.pem`), key: open(`${client}-key.pem`) }],
};
