package run

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	scripts "github.com/sse-soak/sse-soak/load-tests"
)

// Locate returns the absolute path of a program or a file of this repository. It searches the folder of the binary
// (bin/) and the folder above it, then the working directory and its folder bin.
func Locate(elements ...string) (string, error) {
	name := filepath.Join(elements...)
	var folders []string
	if exe, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(exe); err == nil {
			exe = resolved
		}
		folders = append(folders, filepath.Dir(exe), filepath.Dir(filepath.Dir(exe)))
	}
	for _, folder := range append(folders, ".", "bin") {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%s was not found in the folder of %s or in the working directory; build it with `make build`, or use the archive of a release", name, strconv.Quote(os.Args[0]))
}

// Program finds a program of this repository by its name without .exe.
func Program(name string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return Locate(name)
}

// Script returns the path of a script of load-tests. It prefers the file of the working directory, and then one that
// Locate finds, because the user may have changed them. Otherwise it writes all embedded scripts into this user's
// cache.
func Script(elements ...string) (string, error) {
	if info, err := os.Stat(filepath.Join(elements...)); err == nil && !info.IsDir() {
		return filepath.Abs(filepath.Join(elements...))
	}
	if path, err := Locate(elements...); err == nil {
		return path, nil
	}
	folder, err := scripts.CacheFolder()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{filepath.Dir(folder)}, elements...)...), nil
}
