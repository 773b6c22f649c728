package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/safefile"
)

// Limits of an archive. maxRatio is far above the ratio of usual data: samples of node_exporter, one per second, are
// compressed to a seventh of their size.
const (
	maxBytes  = 16 << 30 // bytes of all files
	maxRatio  = 100      // size of all files divided by the size of the archive
	baseBytes = 16 << 20 // bytes of all files that are accepted at any ratio
	maxFiles  = 200_000
	maxSums   = 32 << 20 // bytes of the checksums

	maxContents = 4 << 20 // bytes of archive.json, which lists files

	maxPadding = 1 << 20 // bytes after the end of a tar
)

// Open unpacks an archive into a folder that is empty or does not exist. It does not trust the author of the archive.
// It returns an error for names outside of the folder, links, missing or unlisted files, wrong checksums and too much
// data. After an error it removes all unpacked files.
func Open(ctx context.Context, file, dir string) (c Contents, err error) {
	in, err := openArchive(file)
	if errors.Is(err, os.ErrNotExist) {
		return c, fmt.Errorf("there is no archive %s; name a file that `soak archive` made, or s3://BUCKET/NAME", file)
	}
	if errors.Is(err, safefile.ErrNotRegular) {
		return c, fmt.Errorf("open the archive: %s must be a regular file", file)
	}
	if err != nil {
		return c, fmt.Errorf("open the archive: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return c, err
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return c, fmt.Errorf("%s is not empty; name an empty folder or one that does not exist", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return c, err
	}
	exists := err == nil
	if err := os.MkdirAll(dir, 0o755); err != nil { // #nosec G301 -- containers read it as another user
		return c, err
	}
	c, err = unpackAll(&interruptibleReader{ctx, in}, dir, min(maxBytes, baseBytes+maxRatio*info.Size()))
	if err == nil {
		return c, nil
	}
	cleanErr := os.RemoveAll(dir)
	if exists {
		cleanErr = errors.Join(cleanErr, os.Mkdir(dir, 0o755)) // #nosec G301 -- containers read it as another user
	}
	if ctx.Err() != nil {
		return c, errors.Join(ctx.Err(), cleanErr)
	}
	return c, errors.Join(fmt.Errorf("unpack %s (none of its files were kept): %w", file, err), cleanErr)
}

// openArchive opens an archive. The name may be a link, because the user chose it.
func openArchive(file string) (*os.File, error) {
	path, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, err
	}
	return safefile.Open(path, maxBytes)
}

// HasData reports whether a file is the archive of the run testID and has Prometheus data. It reads only the start of
// the file.
func HasData(file, testID string) bool {
	in, err := openArchive(file)
	if err != nil {
		return false
	}
	defer in.Close()
	uncompressed, err := gzip.NewReader(in)
	if err != nil {
		return false
	}
	for files := tar.NewReader(uncompressed); ; {
		h, err := files.Next()
		if err != nil || path.Base(h.Name) != sumsFile && path.Base(h.Name) != contentsFile {
			return false
		}
		if path.Base(h.Name) == contentsFile {
			var c Contents
			return json.NewDecoder(io.LimitReader(files, maxContents)).Decode(&c) == nil && c.TestID == testID && c.Prometheus.Missing == ""
		}
	}
}

// An interruptibleReader fails after the end of its context, because packing and unpacking gigabytes takes minutes.
type interruptibleReader struct {
	ctx    context.Context
	reader io.Reader
}

func (r *interruptibleReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.reader.Read(p)
}

// An unpacker checks the files that it unpacks.
type unpacker struct {
	root   *os.Root
	top    string            // the folder in the archive
	sums   map[string]string // checksums of the files that are not unpacked yet, by name
	budget int64             // total bytes that the remaining files may have
}

// unpackAll unpacks an archive into a folder. limit is the maximum total size of all files in bytes.
func unpackAll(in io.Reader, dir string, limit int64) (c Contents, err error) {
	root, err := os.OpenRoot(dir) // no name or link can escape dir
	if err != nil {
		return c, err
	}
	defer root.Close()
	uncompressed, err := gzip.NewReader(in)
	if err != nil {
		return c, fmt.Errorf("it is not a tar.gz: %w", err)
	}
	u := &unpacker{root: root, budget: limit}
	files := tar.NewReader(uncompressed)
	for err == nil {
		var h *tar.Header
		if h, err = files.Next(); err == nil {
			err = u.unpack(h, files)
		}
	}
	if errors.Is(err, io.EOF) { // read to the end of the gzip, where its checksum is
		_, err = io.CopyN(io.Discard, uncompressed, maxPadding)
	}
	switch {
	case err == nil:
		return c, errors.New("there is data after its end")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return c, errors.New("it is truncated")
	case !errors.Is(err, io.EOF):
		return c, err
	}
	if u.sums == nil {
		return c, errors.New("it is empty")
	}
	if missing := slices.Sorted(maps.Keys(u.sums)); len(missing) > 0 {
		return c, fmt.Errorf("it lacks %s that %s lists (first: %s)", format.Plural(len(missing), "file", "files"), sumsFile, missing[0])
	}
	return readContents(root)
}

func (u *unpacker) unpack(h *tar.Header, content io.Reader) error {
	top, name, _ := strings.Cut(h.Name, "/")
	switch {
	case h.Typeflag != tar.TypeReg:
		return fmt.Errorf("%q is not a regular file", h.Name)
	case !filepath.IsLocal(h.Name) || path.Clean(h.Name) != h.Name || name == "" || strings.Contains(h.Name, `\`):
		return fmt.Errorf("%q is not a clean name inside the folder of the archive", h.Name)
	case u.sums == nil && name != sumsFile:
		return fmt.Errorf("its first file must be %[2]s, got %[1]q", h.Name, sumsFile)
	case h.Size < 0 || h.Size > u.budget:
		return fmt.Errorf("%q would exceed the limit of all files: %d MiB plus %d times the size of the archive, at most %d GiB",
			h.Name, baseBytes>>20, maxRatio, maxBytes>>30)
	}
	u.budget -= h.Size
	if u.sums == nil {
		u.top = top
		return u.readSums(h, content)
	}
	want, listed := u.sums[name]
	if !listed || top != u.top {
		return fmt.Errorf("%q is not in %s, or is in the archive twice", h.Name, sumsFile)
	}
	delete(u.sums, name)
	if err := u.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), content)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); sum != want {
		return fmt.Errorf("%s does not match its checksum in %s: it was damaged or changed; get the archive from its author again", name, sumsFile)
	}
	return nil
}

func (u *unpacker) readSums(h *tar.Header, content io.Reader) error {
	if h.Size > maxSums {
		return fmt.Errorf("%s must have at most %s, got %s", sumsFile, format.Bytes(maxSums), format.Bytes(h.Size))
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	u.sums = map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(sum) != 2*sha256.Size || u.sums[name] != "" || name == sumsFile || !isPackable(name) {
			return fmt.Errorf("%s has an invalid line: %.80q", sumsFile, line)
		}
		u.sums[name] = sum
		if len(u.sums) > maxFiles {
			return fmt.Errorf("it must have at most %d files", maxFiles)
		}
	}
	out, err := u.root.OpenFile(sumsFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return errors.Join(err, out.Close())
}

// readContents reads and checks archive.json of an unpacked archive. It replaces line breaks and tabs in the texts.
func readContents(root *os.Root) (c Contents, err error) {
	info, err := root.Stat(contentsFile)
	if err == nil && info.Size() > maxContents {
		return c, fmt.Errorf("%s must have at most %s, got %s; get the archive from its author again", contentsFile,
			format.Bytes(maxContents), format.Bytes(info.Size()))
	}
	var text []byte
	if err == nil {
		text, err = root.ReadFile(contentsFile)
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	switch {
	case err != nil:
		return c, fmt.Errorf("read %s: %w", contentsFile, err)
	case c.Schema < 1:
		return c, fmt.Errorf("%s must have the version of its format, got %d", contentsFile, c.Schema)
	case c.Schema > Schema:
		return c, fmt.Errorf("its format has version %d, and this soak reads versions up to %d; open it with a newer soak", c.Schema, Schema)
	case !isPackable(c.TestID):
		return c, fmt.Errorf("%s names the run %q, which is not a valid folder name", contentsFile, c.TestID)
	case c.TestID == "" || c.Ended.Before(c.Started):
		return c, fmt.Errorf("%s must have the name and the times of the run", contentsFile)
	}
	for _, text := range []*string{&c.Verdict, &c.Soak, &c.Prometheus.Missing, &c.Prometheus.Address} {
		*text = oneLine.Replace(*text)
	}
	for _, list := range [][]string{c.Omitted, c.Redacted} {
		for i, text := range list {
			list[i] = oneLine.Replace(text)
		}
	}
	return c, nil
}

// oneLine replaces line breaks and tabs, so that text from an archive cannot forge lines of output. Other control
// characters are escaped when the text is printed.
var oneLine = strings.NewReplacer("\n", " ", "\t", " ")
