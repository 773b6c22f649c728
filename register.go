// SPDX-License-Identifier: AGPL-3.0-only

// Package ssesoak is the k6 extension: imported, it registers k6/x/sse, k6/x/soak, the output soak,
// k6/x/handshake and k6/x/requests. It stands at the root for `xk6 build --with github.com/sse-soak/sse-soak`.
package ssesoak

import (
	_ "github.com/sse-soak/sse-soak/k6/handshake" // registers k6/x/handshake
	_ "github.com/sse-soak/sse-soak/k6/requests"  // registers k6/x/requests
	_ "github.com/sse-soak/sse-soak/k6/soak"      // registers k6/x/soak and the output soak
	_ "github.com/sse-soak/sse-soak/k6/sse"       // registers k6/x/sse
)
