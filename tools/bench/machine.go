package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine names what the figures were measured on. No name of a host: results are published.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
	Date       string `json:"date"`
	LoadBefore string `json:"load_before"` // 1-minute average: over the cores, figures are noisy
	LoadAfter  string `json:"load_after"`
}

func thisMachine() Machine {
	return Machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(), Kernel: firstLine("/proc/sys/kernel/osrelease"),
		Go: runtime.Version(), Date: time.Now().UTC().Format("2006-01-02 15:04 UTC"), LoadBefore: loadAverage(),
	}
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, Linux %s, %s, %s, load %s before and %s after.",
		m.CPU, m.Cores, m.Kernel, m.Go, m.Date, m.LoadBefore, m.LoadAfter)
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func loadAverage() string {
	one, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	return one
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
