// @ts-check
// The soak over TLS, with the certificate of a client: CERTS is a folder as infra/compose/certs makes it.

import { options as usual } from '../../load-tests/sse/connectionTest.js';

export { default, setup } from '../../load-tests/sse/connectionTest.js';

const client = `${__ENV.CERTS}/clients/client-1`;

export const options = {
  ...usual,
  hosts: { localhost: __ENV.CONNECT_TO },
  tlsAuth: [{ cert: open(`${client}.pem`), key: open(`${client}-key.pem`) }],
};
