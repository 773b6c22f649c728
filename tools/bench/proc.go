package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of times in /proc/PID/stat: 100 per second on every Linux.
const userHZ = 100

// cpuOf is the CPU time a process has taken, user and system.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	return parseStat(string(text))
}

// parseStat takes utime and stime, fields 14 and 15, out of a line of /proc/PID/stat. The
// name of the program, field 2, may hold blanks and brackets: count from its last one.
func parseStat(line string) (time.Duration, error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat is not as expected: %q", line)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat is not as expected: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / userHZ, nil
}

// rssOf is the resident memory of a process in bytes.
func rssOf(pid int) (float64, error) { return memoryOf(pid, "status", "VmRSS") }

// pssOf is the same with each shared page divided among those who share it.
func pssOf(pid int) (float64, error) { return memoryOf(pid, "smaps_rollup", "Pss") }

func memoryOf(pid int, file, field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, fmt.Errorf("read the memory: %w", err)
	}
	return parseMemory(string(text), field)
}

// parseMemory reads a line as "VmRSS:   1234 kB".
func parseMemory(text, field string) (float64, error) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(line, field+":")
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
		if err != nil {
			return 0, fmt.Errorf("%s is not as expected: %w", field, err)
		}
		return n * 1024, nil
	}
	return 0, fmt.Errorf("there is no %s", field)
}

// childrenOf lists the processes that any thread of a process started.
func childrenOf(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, f := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// childNamed is our child that runs a program of this name, 0 for none.
func childNamed(name string) int {
	for _, pid := range childrenOf(os.Getpid()) {
		if firstLine(fmt.Sprintf("/proc/%d/comm", pid)) == name {
			return pid
		}
	}
	return 0
}

// sumOf adds up a figure over processes.
func sumOf(pids []int, figure func(int) (float64, error)) (sum float64, err error) {
	for _, pid := range pids {
		v, err := figure(pid)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}
