package ledger_test

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// One noop is expected on the stream each second, and the third is lost. A ledger has no clock: each call passes the
// time since the start of the program.
func Example() {
	const sec = time.Second
	l := ledger.New("device-1", &ledger.Config{Interval: sec, LatenessLimit: sec})

	l.Connecting(1 * sec)
	l.Opened(1 * sec)
	for _, number := range []uint64{1, 2, 4, 5} {
		l.Noop(ledger.Noop{At: 1*sec + time.Duration(number)*sec, Number: number, Intact: true})
	}
	l.CloseRequested(6*sec + sec/2)
	l.Closed(6*sec+sec/2, "server", true, false)

	r := l.Record()
	fmt.Printf("%s: received %d of %d, faultless: %v\n", r.State, r.Received, r.Expected(), r.ReceivedWithoutFault())
	for _, f := range r.Findings {
		fmt.Printf("%s: noop %d, noticed at %v\n", f.Kind, f.From, f.At)
	}
	// Output:
	// completed: received 4 of 5, faultless: false
	// lost: noop 3, noticed at 5s
}
