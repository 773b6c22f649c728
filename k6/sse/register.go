package sse

import "go.k6.io/k6/v2/js/modules"

// ImportPath is what a script imports.
const ImportPath = "k6/x/sse"

func init() {
	modules.Register(ImportPath, New())
}
