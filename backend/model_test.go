package main

import (
	"bytes"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModelSettings(t *testing.T) {
	env := func(name string) (string, bool) {
		v, set := map[string]string{"MODEL_CHUNKS": "7", "MODEL_DELAY": "1", "SEED": "x", "MODEL_FAULT": "drop@1:0.5"}[name]
		return v, set
	}
	var c modelConfig
	verb, err := parseSettings(c.settings(), modelVariable, []string{"--delay=5ms", "--size=30"}, env)
	require.NoError(t, err)
	require.Empty(t, verb)
	require.Equal(t, 7, c.Chunks)
	require.Equal(t, "5ms", c.Delay.String())
	require.Len(t, c.Shares, 1)
	var repeated modelConfig
	_, err = parseSettings(repeated.settings(), modelVariable, []string{"--fault=drop@1:0.5", "--fault=reset:0.1"}, env)
	require.NoError(t, err)
	require.Len(t, repeated.Shares, 2)
}

func TestModelCommand(t *testing.T) {
	for _, test := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"model", "--help"}, exitOK, "MODEL_TTFT", ""},
		{[]string{"model", "--chunks=0"}, exitUsage, "", "--chunks=0"},
		{[]string{"model", "--fault=fall"}, exitUsage, "", "must be one of"},
		{[]string{"model", "--healthcheck", "--listen=127.0.0.1:1"}, exitError, "", "check the health of"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, test.code, run(test.args, noEnv, nil, &stdout, &stderr))
		require.Contains(t, stdout.String(), test.stdout)
		require.Contains(t, stderr.String(), test.stderr)
	}
}

func TestModelServesUntilASignal(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run([]string{"model", "--listen=127.0.0.1:0"}, noEnv, signals, &stdout, &stderr), stderr.String())
	require.Contains(t, stderr.String(), `"msg":"listening"`)
}
