// SPDX-License-Identifier: AGPL-3.0-only

// Package ssesoak is the k6 extension for `xk6 build --with github.com/sse-soak/sse-soak`. It registers the modules
// k6/x/soak, k6/x/handshake and k6/x/requests, and the output soak. cmd/k6 adds the module k6/x/sse, whose name belongs
// to another extension.
package ssesoak

import (
	_ "github.com/sse-soak/sse-soak/k6/handshake" // registers k6/x/handshake
	_ "github.com/sse-soak/sse-soak/k6/requests"  // registers k6/x/requests
	_ "github.com/sse-soak/sse-soak/k6/soak"      // registers k6/x/soak and the output soak
)
