package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/safefile"
)

// A ledgerRow is the row of one id in the ledger. First and Last are the lowest and the highest sent number of the
// current numbering. Sent counts the sent numbers; a replayed number counts once. A number is sent when the kernel, or
// the queue of a TLS writer, has accepted its event. It also counts as sent if a fault suppressed the event.
// Times are in microseconds since 1970; 0: none.
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

func (d *device) row() ledgerRow {
	return ledgerRow{
		ID: d.id, First: d.first, Last: d.last, Sent: d.sentCount, Streams: d.streams, Open: d.open,
		Closed: d.reason.String(), Opened: d.openedAt, ClosedAt: d.closedAt, Slow: d.slow,
	}
}

// ledgerPage is the number of rows that the scheduler copies at a time, in about 50 microseconds.
const ledgerPage = 512

// A ledgerSnapshot has the ids of the ledger at one moment.
type ledgerSnapshot struct {
	list      []*device
	evictions uint64 // number of ids evicted before the snapshot
}

func (h *hub) snapshotLedger() (ledgerSnapshot, error) {
	return query(h, func() (ledgerSnapshot, error) { return ledgerSnapshot{slices.Clone(h.connectOrder), h.evictions}, nil })
}

// writeLedger writes one line of JSON for each id of a snapshot, if the id starts with prefix and has had a stream. It
// queries the scheduler page by page, so that a large ledger does not delay noops.
func (h *hub) writeLedger(w io.Writer, ids ledgerSnapshot, prefix string) error {
	rows := make([]ledgerRow, 0, ledgerPage)
	enc := json.NewEncoder(w)
	for page := range slices.Chunk(ids.list, ledgerPage) {
		rows = rows[:0]
		if !h.call(func() {
			for _, d := range page {
				if d.streams > 0 && (d.eviction == 0 || d.eviction > ids.evictions) && strings.HasPrefix(d.id, prefix) {
					rows = append(rows, d.row())
				}
			}
		}) {
			return errStopped
		}
		for i := range rows {
			if err := enc.Encode(&rows[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *hub) saveLedger(path string) error {
	ids, err := h.snapshotLedger()
	if err == nil {
		err = safefile.Write(path, func(w io.Writer) error { return h.writeLedger(w, ids, "") })
	}
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}
