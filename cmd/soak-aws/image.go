package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// An imageArchive is the part of an archive of `docker save` that decides which hosts can run it.
type imageArchive struct {
	platforms map[string]string // of each image, by its name: linux/amd64
	programs  map[string]string // of each program of ours, by its path in the image
}

// programNames are the programs of ours in images.
var programNames = []string{"k6", "soak", "backend", "nginxconf", "reference"}

// readImages looks into an archive of images, which may be compressed.
func readImages(file string) (imageArchive, error) {
	archive := imageArchive{platforms: map[string]string{}, programs: map[string]string{}}
	f, err := os.Open(file) //nolint:gosec // G304: the runners' image, by a flag
	if err != nil {
		return archive, err
	}
	defer f.Close()
	texts := map[string][]byte{} // JSON in it, by name
	err = eachFile(f, func(name string, content *bufio.Reader) error {
		if first, err := content.Peek(1); err == nil && strings.ContainsAny(string(first), "{[") {
			texts[name], err = io.ReadAll(content)
			return err
		}
		return eachFile(content, archive.addProgram) // of a layer
	})
	if err == nil {
		err = archive.addPlatforms(texts)
	}
	if err != nil {
		return archive, fmt.Errorf("%s is no archive of `docker save`: %w", file, err)
	}
	return archive, nil
}

// addPlatforms reads what the manifest says of each image.
func (a imageArchive) addPlatforms(texts map[string][]byte) error {
	var manifest []struct {
		Config   string
		RepoTags []string
	}
	if err := json.Unmarshal(texts["manifest.json"], &manifest); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	for _, image := range manifest {
		var config struct{ OS, Architecture string }
		if err := json.Unmarshal(texts[image.Config], &config); err != nil {
			return fmt.Errorf("%s: %w", image.Config, err)
		}
		a.platforms[strings.Join(image.RepoTags, " ")] = config.OS + "/" + config.Architecture
	}
	return nil
}

// addProgram notes what a program in a layer was built for.
func (a imageArchive) addProgram(name string, content *bufio.Reader) error {
	if slices.Contains(programNames, path.Base(name)) {
		a.programs[name] = builtFor(content)
	}
	return nil
}

// builtFor returns the architecture in the header of a program. That of the image may differ, since programs are copied into it.
func builtFor(content *bufio.Reader) string {
	const machineAt = 18
	header, err := content.Peek(machineAt + 2)
	if err != nil || !bytes.HasPrefix(header, []byte("\x7fELF")) {
		return "another system than Linux"
	}
	switch machine := binary.LittleEndian.Uint16(header[machineAt:]); machine {
	case 0x3e:
		return "linux/amd64"
	case 0xb7:
		return "linux/arm64"
	default:
		return fmt.Sprintf("linux on machine %#x", machine)
	}
}

// eachFile goes through the files of an archive, which may be compressed. What is no archive has none.
func eachFile(r io.Reader, visit func(name string, content *bufio.Reader) error) error {
	buffered := bufio.NewReader(r)
	r = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if r, err = gzip.NewReader(buffered); err != nil {
			return err
		}
	}
	archive := tar.NewReader(r)
	for first := true; ; first = false {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF), first && (errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF)):
			return nil
		case err != nil:
			return err
		case header.Typeflag != tar.TypeReg:
			continue
		}
		if err := visit(path.Clean(header.Name), bufio.NewReader(archive)); err != nil {
			return err
		}
	}
}

// fits returns an error if hosts of an architecture cannot run all of it.
func (a imageArchive) fits(architecture string) error {
	want := "linux/" + architecture
	for name, is := range a.platforms {
		if is != want {
			return fmt.Errorf("the image %s is for %s, and its hosts are %s", name, is, want)
		}
	}
	for name, is := range a.programs {
		if is != want {
			return fmt.Errorf("%s in the image is built for %s, and its hosts are %s", name, is, want)
		}
	}
	if len(a.programs) == 0 {
		return errors.New("none of the programs " + strings.Join(programNames, ", ") + " is in the image")
	}
	return nil
}
