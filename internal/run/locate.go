package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Beside finds a program or a file of this repository: beside the binary (bin/), in the
// folder above it, or in the working directory.
func Beside(elements ...string) (string, error) {
	name := filepath.Join(elements...)
	var folders []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		folders = append(folders, filepath.Dir(exe), filepath.Dir(filepath.Dir(exe)))
	}
	for _, folder := range append(folders, ".", "bin") {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%s was not found beside %s: `make build` makes it", name, strconv.Quote(os.Args[0]))
}
