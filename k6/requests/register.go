package requests

import "go.k6.io/k6/v2/js/modules"

// importPath is what a script imports.
const importPath = "k6/x/requests"

func init() { modules.Register(importPath, New()) }
