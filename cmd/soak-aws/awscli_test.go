package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

// awsCLI is the AWS CLI, loaded once for all tests (testdata/forking.py).
var awsCLI struct {
	once   sync.Once
	dir    string
	socket string // socket of the loaded program; "": loading failed
	cmd    *exec.Cmd
}

// addPrograms writes executable files to a folder, adds the folder to the PATH, and returns it.
func addPrograms(t *testing.T, files map[string]string) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755))
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return bin
}

// linkProgram creates and returns a link to the test program. The name of the link determines what TestMain runs.
func linkProgram(t *testing.T, dir, name string) string {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(dir, name)
	require.NoError(t, os.Symlink(executable, link))
	return link
}

// useCommandLine adds the real AWS CLI to the PATH.
func useCommandLine(t *testing.T) {
	t.Helper()
	program, err := exec.LookPath("aws")
	if err != nil {
		untested.SkipMissing(t, "the AWS CLI is not installed")
	}
	awsCLI.once.Do(func() {
		awsCLI.dir, err = os.MkdirTemp("", "awscli-")
		require.NoError(t, err)
		awsCLI.cmd = exec.Command("python3", "testdata/forking.py", filepath.Join(awsCLI.dir, "socket"))
		awsCLI.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		output, err := awsCLI.cmd.StdoutPipe()
		require.NoError(t, err)
		if awsCLI.cmd.Start() == nil {
			if line, _ := bufio.NewReader(output).ReadString('\n'); line == "ready\n" {
				awsCLI.socket = filepath.Join(awsCLI.dir, "socket")
			}
		}
	})
	linkProgram(t, addPrograms(t, nil), "aws")
	t.Setenv("AWS_COMMAND_LINE", program)
	t.Setenv("AWS_COMMAND_LINE_SOCKET", awsCLI.socket)
}

func stopCommandLine() {
	if awsCLI.cmd != nil && awsCLI.cmd.Process != nil {
		_ = awsCLI.cmd.Process.Kill()
		_ = awsCLI.cmd.Wait()
	}
	_ = os.RemoveAll(awsCLI.dir)
}

// commandLine runs the real AWS CLI and returns its exit code.
func commandLine(args []string) int {
	socket := os.Getenv("AWS_COMMAND_LINE_SOCKET")
	if socket == "" {
		if err := syscall.Exec(os.Getenv("AWS_COMMAND_LINE"), append([]string{"aws"}, args...), os.Environ()); err != nil {
			panic(err)
		}
	}
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	text, err := json.Marshal(map[string]any{"args": args, "env": env})
	if err != nil {
		panic(err)
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		panic(err)
	}
	if _, _, err := c.WriteMsgUnix(text, syscall.UnixRights(1, 2), nil); err != nil {
		panic(err)
	}
	code := make([]byte, 1)
	if _, err := c.Read(code); err != nil {
		return 1
	}
	return int(code[0])
}
