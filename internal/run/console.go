package run

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// A console is an output that redraws a block of lines at its end. Other text appears above the block.
type console struct {
	out   io.Writer
	width func() int // returns the number of columns of the terminal

	mu    sync.Mutex
	block []string
}

var stderr = &console{out: os.Stderr, width: func() int {
	width, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil {
		return 80
	}
	return width
}}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := io.WriteString(c.out, c.clear()+string(p)+strings.Join(c.block, "\n"))
	return len(p), err
}

func (c *console) draw(lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.clear()
	c.block = nil
	for _, line := range lines {
		c.block = append(c.block, fit(line, c.width()))
	}
	_, _ = io.WriteString(c.out, text+strings.Join(c.block, "\n")) // a closed terminal does not end a run
}

// fit shortens a line to fewer columns than width. If possible, it ends the line before a "·", which separates the
// parts of the line.
func fit(line string, width int) string {
	const separator = " · "
	runes := []rune(line)
	if len(runes) < width {
		return line
	}
	start, tail := string(runes[:max(width-1, 0)]), string(runes[max(width-1, 0):])
	if at := strings.LastIndex(start, separator); at > 0 && !strings.HasPrefix(tail, separator) {
		return start[:at]
	}
	return start
}

func (c *console) endBlock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.block) > 0 {
		_, _ = io.WriteString(c.out, "\n")
	}
	c.block = nil
}

// clear returns the control sequence that removes the block, and any echoed keys after it, from the screen.
func (c *console) clear() string {
	switch n := len(c.block); {
	case n > 1:
		return fmt.Sprintf("\r\x1b[%dA\x1b[J", n-1)
	case n == 1:
		return "\r\x1b[J"
	}
	return ""
}
