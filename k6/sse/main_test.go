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
		if stacks := leaked(); stacks != "" {
			fmt.Println("goroutines left behind:\n" + stacks)
			code = 1
		}
	}
	os.Exit(code)
}

// leaked returns the stacks of goroutines still in this package, "" as soon as there
// are none.
func leaked() string {
	var left []string
	for range 2000 {
		left = left[:0]
		buf := make([]byte, 4<<20)
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if (strings.Contains(stack, "/k6/sse.") || strings.Contains(stack, "/sseclient.")) && !strings.Contains(stack, "TestMain") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return strings.Join(left, "\n\n")
}
