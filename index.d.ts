// Types of the modules of this extension: k6/x/soak, k6/x/handshake and k6/x/requests.
/// <reference path="./load-tests/types/index.d.ts" />
