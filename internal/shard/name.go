package shard

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Suffix ends the name of every shard.
const Suffix = ".json.gz"

// NewID returns a random id of 16 hexadecimal digits.
func NewID() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

var unsafeCharacters = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

const maxHost, maxProcess = 40, 8

// FileName returns the name of the file of a runner. It is unique per process, because the runners of two laptops may
// write to one folder. The host helps users find a file. Without a process, a name has the form runner-1.json.gz.
func FileName(r Runner) string {
	name := "runner-" + strconv.Itoa(r.Index)
	if host := unsafeCharacters.ReplaceAllString(r.Host, "-"); host != "" && r.Process != "" {
		name += "-" + host[:min(len(host), maxHost)]
	}
	if r.Process != "" {
		name += "-" + r.Process[:min(len(r.Process), maxProcess)]
	}
	return name + Suffix
}

// fileNamePattern matches the names that FileName returns. Its first group is the index of the runner.
var fileNamePattern = regexp.MustCompile(`^runner-([0-9]{1,9})(-.*)?\.json\.gz$`)

// IndexOf returns the index of the runner of a file. ok is false if the name does not contain it.
func IndexOf(name string) (index int, ok bool) {
	found := fileNamePattern.FindStringSubmatch(name)
	if found == nil {
		return 0, false
	}
	index, err := strconv.Atoi(found[1])
	return index, err == nil
}

// IsFile reports whether a file is a shard, by its name. Hidden files are not shards: a copy by macOS may create
// ._runner-1.json.gz.
func IsFile(name string) bool {
	return strings.HasSuffix(name, Suffix) && !strings.HasPrefix(name, ".")
}

// String returns the name of a runner for display.
func (r *Runner) String() string {
	return fmt.Sprintf("runner %d%s", r.Index, r.onHost())
}

func (r *Runner) onHost() string {
	if r.Host == "" {
		return ""
	}
	return " on " + r.Host
}
