package handshake

import "go.k6.io/k6/v2/js/modules"

// importPath is the name of the module in scripts.
const importPath = "k6/x/handshake"

func init() { modules.Register(importPath, New()) }
