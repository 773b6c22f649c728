package sse

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if stacks := leakedStacks(); stacks != "" {
			fmt.Println("leaked goroutines:\n" + stacks)
			code = 1
		}
	}
	os.Exit(code)
}

// leakedStacks waits until no goroutine runs code of this package or sseclient. It returns the stacks of goroutines
// that still do so after 20 s.
func leakedStacks() string {
	var stacks []string
	for range 2000 {
		stacks = stacks[:0]
		buf := make([]byte, 4<<20)
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if (strings.Contains(stack, "/k6/sse.") || strings.Contains(stack, "/sseclient.")) && !strings.Contains(stack, "TestMain") {
				stacks = append(stacks, stack)
			}
		}
		if len(stacks) == 0 {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return strings.Join(stacks, "\n\n")
}
