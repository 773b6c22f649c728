package shard

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sse-soak/sse-soak/store"
)

// FileName is the name of the file of the runner with this index, from 1.
func FileName(index int) string { return "runner-" + strconv.Itoa(index) + ".json.gz" }

// Encode is the shard as a file.
func Encode(s *Shard) ([]byte, error) {
	var b bytes.Buffer
	if err := encode(&b, s); err != nil {
		return nil, fmt.Errorf("encode the shard of runner %d: %w", s.Runner.Index, err)
	}
	return b.Bytes(), nil
}

// Write puts the shard at path, whole or not at all.
func Write(path string, s *Shard) error {
	return store.Folder(filepath.Dir(path)).Write(filepath.Base(path), func(w io.Writer) error { return encode(w, s) })
}

func encode(w io.Writer, s *Shard) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(z).Encode(s); err != nil {
		return err
	}
	return z.Close()
}

// ReadFile reads the shard at path.
func ReadFile(path string) (*Shard, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read shard: %w", err)
	}
	defer f.Close()
	s, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("read shard %s: %w", path, err)
	}
	return s, nil
}

// Read reads one shard to its very end: a file that was cut short, has something behind its
// end or is of another version is an error, never half a shard.
func Read(r io.Reader) (*Shard, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("not a whole gzip file: %w", err)
	}
	d := json.NewDecoder(z)
	var s Shard
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("not a whole shard: %w", err)
	}
	if s.Schema != Schema {
		return nil, fmt.Errorf("it has schema %d, this version reads %d", s.Schema, Schema)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // also checks gzip's checksum
		return nil, fmt.Errorf("not a whole shard: %w", orTrailing(err))
	}
	return &s, s.check()
}

func orTrailing(err error) error {
	if err == nil {
		return errors.New("something follows its end")
	}
	return err
}

// check refuses what no runner writes, so that later steps need not.
func (s *Shard) check() error {
	if s.Connect == nil || s.FirstNoop == nil || s.Lateness == nil {
		return errors.New("it lacks a histogram")
	}
	if s.Latency != nil && s.Latency.Histogram == nil {
		return errors.New("it lacks the latency's histogram")
	}
	if s.Runner.Index < 1 {
		return fmt.Errorf("its runner has index %d, they count from 1", s.Runner.Index)
	}
	for _, r := range s.Connections {
		if r.ID == "" {
			return errors.New("it holds a connection without id")
		}
	}
	return nil
}
