package verdict

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A ServerEntry has the server's counts of one id: a line of GET /event/ledger.
type ServerEntry struct {
	ID    string `json:"id"`
	First uint64 `json:"first"` // number of the first message sent
	Last  uint64 `json:"last"`  // number of the last message sent
	Sent  uint64 `json:"sent"`
}

// A ServerLedger has the server's own counts by id; nil if the server has no ledger.
type ServerLedger map[string]ServerEntry

// ReadServerLedger reads the NDJSON file that the run saved. It returns nil if the file does not exist.
func ReadServerLedger(path string) (ServerLedger, error) {
	l := make(ServerLedger, estimatedEntries(path))
	if exists, err := readLedger(path, "read the server's ledger", l.add); err != nil || !exists {
		return nil, err
	}
	return l, nil
}

// estimatedEntries estimates the number of entries in a file. A map that grows to a million entries copies each of them
// once more, and doubles the memory meanwhile.
func estimatedEntries(path string) int64 {
	const entrySize, limit = 80, 1 << 20 // a file may be damaged
	info, err := os.Stat(path)
	if err != nil {
		return 0 // readLedger reports the error
	}
	return min(info.Size()/entrySize, limit)
}

// readLedger calls add with each entry of an NDJSON file, and reports whether the file exists.
func readLedger[E any](path, operation string, add func(E) error) (exists bool, err error) {
	f, err := safefile.Open(path, safefile.Table)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", operation, err)
	}
	defer f.Close()
	if err := eachLine(f, add); err != nil {
		return false, fmt.Errorf("%s %s: %w", operation, path, err)
	}
	return true, nil
}

func (l ServerLedger) add(e ServerEntry) error {
	if e.ID == "" {
		return errors.New("the entry has no id")
	}
	entries := len(l)
	if l[e.ID] = e; len(l) == entries {
		return fmt.Errorf("the id %s occurs a second time", e.ID)
	}
	return e.check()
}

func eachLine[E any](r io.Reader, add func(E) error) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var e E
		err := jsonv2.Unmarshal(lines.Bytes(), &e, shard.LegacyJSON)
		if err == nil {
			err = add(e)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err() //nolint:wrapcheck // the caller names the file
}

// maxSent limits each number that a server may report for one id, so that sums over all ids do not overflow.
const maxSent = 1 << 40

// check returns an error for impossible counts. Last is 0 if messages have no numbers. Sent may exceed Last if the
// numbers restarted.
func (e *ServerEntry) check() error {
	for _, n := range []uint64{e.First, e.Last, e.Sent} {
		if n > maxSent {
			return fmt.Errorf("%s has the number %d, above %d", e.ID, n, uint64(maxSent))
		}
	}
	if e.First > 0 && e.Last > 0 && e.Last < e.First-1 {
		return fmt.Errorf("%s has the last number %d before its first, %d", e.ID, e.Last, e.First)
	}
	return nil
}
