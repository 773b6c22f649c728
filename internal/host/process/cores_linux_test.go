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
	all := Allowed()
	require.NotEmpty(t, all)
	for _, cores := range []Cores{nil, all[len(all)-1:]} {
		log := filepath.Join(t.TempDir(), "log")
		p, err := Start(Spec{Name: "status", Path: "/bin/cat", Args: []string{"/proc/self/status"}, Log: log, Cores: cores, OrphanSignal: syscall.SIGKILL})
		require.NoError(t, err)
		<-p.Done()
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		_, list, _ := strings.Cut(string(text), "Cpus_allowed_list:\t")
		list, _, _ = strings.Cut(list, "\n")
		if cores == nil {
			require.Equal(t, len(all) > 1, strings.ContainsAny(list, "-,"), "the process may use all cores, got %s", list)
		} else {
			require.Equal(t, cores.String(), list)
		}
		require.Equal(t, all, Allowed(), "Start must not change the cores of this process")
	}
}

func TestHalvesKeepThreadsOfACoreTogether(t *testing.T) {
	t.Parallel()
	single := func(n int) string { return fmt.Sprint(n) }      // one thread per core
	pairs := func(n int) string { return fmt.Sprint(n / 2) }   // 0 and 1 are threads of one core
	distant := func(n int) string { return fmt.Sprint(n % 4) } // 0 and 4 are threads of one core
	for _, c := range []struct {
		all, first, second Cores
		core               func(int) string
		threads            bool
	}{
		{Cores{0, 1}, Cores{0}, Cores{1}, single, false},
		{Cores{2, 3, 5}, Cores{2}, Cores{3, 5}, single, false},
		{Cores{4}, nil, nil, single, false},
		{nil, nil, nil, single, false},
		{Cores{0, 1, 2, 3}, Cores{0, 1}, Cores{2, 3}, pairs, false},
		{Cores{0, 1, 2, 3, 4, 5, 6, 7}, Cores{0, 1, 4, 5}, Cores{2, 3, 6, 7}, distant, false},
		{Cores{0, 1}, Cores{0}, Cores{1}, pairs, true},
	} {
		first, second, threads := c.all.Halves(c.core)
		require.Equal(t, []Cores{c.first, c.second}, []Cores{first, second})
		require.Equal(t, c.threads, threads, c.all)
	}
	require.NotEmpty(t, CoreOf(Allowed()[0]))
	require.Equal(t, "0,2,3", Cores{0, 2, 3}.String())
}

func TestStartNamesMissingCores(t *testing.T) {
	t.Parallel()
	_, err := Start(Spec{Name: "program", Path: "/bin/true", Log: filepath.Join(t.TempDir(), "log"), Cores: Cores{1000}, OrphanSignal: syscall.SIGKILL})
	require.ErrorContains(t, err, "start program: set the cores 1000")
}
