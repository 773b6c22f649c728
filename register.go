// SPDX-License-Identifier: AGPL-3.0-only

// Package ssesoak is the k6 extension for `xk6 build --with github.com/sse-soak/sse-soak`: imported, it registers k6/x/soak, the
// output soak, k6/x/handshake and k6/x/requests. cmd/k6 adds k6/x/sse, a name that belongs to another extension.
package ssesoak

import (
	_ "github.com/sse-soak/sse-soak/k6/handshake" // registers k6/x/handshake
	_ "github.com/sse-soak/sse-soak/k6/requests"  // registers k6/x/requests
	_ "github.com/sse-soak/sse-soak/k6/soak"      // registers k6/x/soak and the output soak
)
