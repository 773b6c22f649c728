package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ledgerRow is one id in the ledger: what this process put on its streams.
// First and Last are numbers of the present numbering, Sent is how many of them
// the kernel took (a replay counts once). Times are microseconds since 1970,
// 0 for none.
type ledgerRow struct {
	ID       string `json:"id"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	Sent     uint64 `json:"sent"`
	Streams  uint32 `json:"streams"`
	Open     bool   `json:"open"`
	Closed   string `json:"closed"`
	Opened   int64  `json:"opened_unix_us"`
	ClosedAt int64  `json:"closed_unix_us"`
	Slow     bool   `json:"slow"`
}

// row copies the device's line of the ledger.
func (d *device) row() ledgerRow {
	return ledgerRow{
		ID: d.id, First: d.first, Last: d.last, Sent: d.sent, Streams: d.streams, Open: d.open,
		Closed: d.reason.String(), Opened: d.opened, ClosedAt: d.closed, Slow: d.slow,
	}
}

// Rows the scheduler copies at a time; some 50 microseconds.
const ledgerPage = 512

// ledgerIDs takes the ids that were there at one moment, and how many the
// ledger lost before.
func (h *hub) ledgerIDs() (list []*device, evicted uint64, ok bool) {
	ok = h.call(func() {
		list, evicted = append(list, h.order...), h.evicted
	})
	return list, evicted, ok
}

// writeLedger writes a line for each id with that prefix, but for those that
// were evicted before the list was taken. The scheduler is
// asked page by page, so that a ledger of any size delays no noop.
func (h *hub) writeLedger(w io.Writer, list []*device, evicted uint64, prefix string) error {
	rows := make([]ledgerRow, 0, ledgerPage)
	enc := json.NewEncoder(w)
	for len(list) > 0 {
		page := list[:min(ledgerPage, len(list))]
		list = list[len(page):]
		rows = rows[:0]
		if !h.call(func() {
			for _, d := range page {
				if d.streams > 0 && (d.gone == 0 || d.gone > evicted) && strings.HasPrefix(d.id, prefix) {
					rows = append(rows, d.row())
				}
			}
		}) {
			return fmt.Errorf("the scheduler has ended")
		}
		for i := range rows {
			if err := enc.Encode(&rows[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// saveLedger writes the whole ledger to a file, which appears complete or not
// at all.
func (h *hub) saveLedger(path string) error {
	list, evicted, ok := h.ledgerIDs()
	if !ok {
		return fmt.Errorf("write ledger %s: the scheduler has ended", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".ledger-*")
	if err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	defer os.Remove(f.Name())
	err = h.writeLedger(f, list, evicted, "")
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write ledger %s: %w", path, err)
	}
	return nil
}
