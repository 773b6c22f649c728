package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcessRunsOnItsCores(t *testing.T) {
	t.Parallel()
	all := AllowedCPUs()
	require.NotEmpty(t, all)
	for _, cpus := range []CPUList{nil, all[len(all)-1:]} {
		log := filepath.Join(t.TempDir(), "log")
		p, err := Start(Spec{Name: "status", Path: "/bin/cat", Args: []string{"/proc/self/status"}, Log: log, CPUs: cpus, OrphanSignal: syscall.SIGKILL})
		require.NoError(t, err)
		<-p.Done()
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		_, list, _ := strings.Cut(string(text), "Cpus_allowed_list:\t")
		list, _, _ = strings.Cut(list, "\n")
		if cpus == nil {
			require.Equal(t, len(all) > 1, strings.ContainsAny(list, "-,"), "the process must be allowed to use all CPUs, got %s", list)
		} else {
			require.Equal(t, cpus.String(), list)
		}
		require.Equal(t, all, AllowedCPUs(), "Start must not change the CPUs of this process")
	}
}

func TestHalvesKeepThreadsOfACoreTogether(t *testing.T) {
	t.Parallel()
	single := func(n int) string { return fmt.Sprint(n) }      // one thread per core
	pairs := func(n int) string { return fmt.Sprint(n / 2) }   // 0 and 1 are threads of one core
	distant := func(n int) string { return fmt.Sprint(n % 4) } // 0 and 4 are threads of one core
	for _, c := range []struct {
		all, first, second CPUList
		core               func(int) string
		threads            bool
	}{
		{CPUList{0, 1}, CPUList{0}, CPUList{1}, single, false},
		{CPUList{2, 3, 5}, CPUList{2}, CPUList{3, 5}, single, false},
		{CPUList{4}, nil, nil, single, false},
		{nil, nil, nil, single, false},
		{CPUList{0, 1, 2, 3}, CPUList{0, 1}, CPUList{2, 3}, pairs, false},
		{CPUList{0, 1, 2, 3, 4, 5, 6, 7}, CPUList{0, 1, 4, 5}, CPUList{2, 3, 6, 7}, distant, false},
		{CPUList{0, 1}, CPUList{0}, CPUList{1}, pairs, true},
	} {
		first, second, threads := c.all.Halves(c.core)
		require.Equal(t, []CPUList{c.first, c.second}, []CPUList{first, second})
		require.Equal(t, c.threads, threads, c.all)
	}
	require.NotEmpty(t, CoreOf(AllowedCPUs()[0]))
	require.Equal(t, "0,2,3", CPUList{0, 2, 3}.String())
}

func TestStartNamesMissingCores(t *testing.T) {
	t.Parallel()
	_, err := Start(Spec{Name: "program", Path: "/bin/true", Log: filepath.Join(t.TempDir(), "log"), CPUs: CPUList{1000}, OrphanSignal: syscall.SIGKILL})
	require.ErrorContains(t, err, "start program: set the CPUs 1000")
}
