package compose

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

func script(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command("./"+name, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	require.NoError(t, err)
	return string(b)
}

var secret = regexp.MustCompile(`(?m)^(?:BACKEND_TOKEN|GRAFANA_PASSWORD|GRAFANA_VIEWER_PASSWORD|PROMETHEUS_PASSWORD)=(.*)$`)

func TestEnvIsCreatedOnceWithNewSecrets(t *testing.T) {
	t.Parallel()
	values := map[string]bool{}
	for range 2 {
		file := filepath.Join(t.TempDir(), ".env")
		script(t, "env", file)
		text := read(t, file)
		for _, m := range secret.FindAllStringSubmatch(text, -1) {
			require.Regexp(t, "^[0-9a-f]{48}$", m[1])
			values[m[1]] = true
		}
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		script(t, "env", file)
		require.Equal(t, text, read(t, file), "a second call of the script must not change the file")
	}
	require.Len(t, values, 8)
	for _, m := range secret.FindAllStringSubmatch(read(t, "..", "..", ".env.example"), -1) {
		require.Empty(t, m[1], "the example must not contain secrets")
	}
}

func TestComposeUsesEachSetting(t *testing.T) {
	t.Parallel()
	compose := read(t, "..", "..", "compose.yaml")
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+)=`).FindAllStringSubmatch(read(t, "..", "..", ".env.example"), -1) {
		require.Contains(t, compose+read(t, "refresh"), m[1], "compose.yaml or refresh must use each setting")
	}
}

func TestImagesHaveVersions(t *testing.T) {
	t.Parallel()
	compose := read(t, "..", "..", "compose.yaml")
	for _, m := range regexp.MustCompile(`(?m)^ +image: (\S+)$`).FindAllStringSubmatch(compose, -1) {
		require.Regexp(t, `:(v?[0-9]+\.[0-9]+\.[0-9]+(-alpine)?|local)$`, m[1], "the image must have a version")
	}
}

func TestPublishedPortsAreLocal(t *testing.T) {
	t.Parallel()
	compose := read(t, "..", "..", "compose.yaml")
	for _, m := range regexp.MustCompile(`(?m)^ +ports: \["?([^"\]]+)`).FindAllStringSubmatch(compose, -1) {
		require.True(t, strings.HasPrefix(m[1], "127.0.0.1:"), "%s must listen on 127.0.0.1, because docker-proxy would open it to the network", m[1])
	}
}

func certificate(t *testing.T, elements ...string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(read(t, elements...)))
	require.NotNil(t, block)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return c
}

func TestCertificatesAreValidForTheirNames(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		untested.SkipMissing(t, "openssl is not installed")
	}
	folder := filepath.Join(t.TempDir(), "certs")
	script(t, "certs", folder, "soak.example", "10.1.2.3")
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, folder, "ca.pem"))
	server := certificate(t, folder, "server", "server.pem")
	for _, name := range []string{"localhost", "127.0.0.1", "soak.example", "10.1.2.3"} {
		_, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		require.NoError(t, err)
	}
	_, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: "other.example"})
	require.Error(t, err)
	entries, err := os.ReadDir(filepath.Join(folder, "server"))
	require.NoError(t, err)
	require.Len(t, entries, 2, "the folder that nginx can read must not contain the key of the authority")
	asClient := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, name := range []string{"client-1.pem", "client-4.pem"} {
		_, err = certificate(t, folder, "clients", name).Verify(asClient)
		require.NoError(t, err)
	}
	_, err = certificate(t, folder, "clients", "stranger.pem").Verify(asClient)
	require.Error(t, err, "a self-signed certificate must be rejected")
	impostor, client := certificate(t, folder, "clients", "impostor.pem"), certificate(t, folder, "clients", "client-1.pem")
	require.Equal(t, [2]string{client.Subject.String(), client.Issuer.String()}, [2]string{impostor.Subject.String(), impostor.Issuer.String()})
	_, err = impostor.Verify(asClient)
	require.Error(t, err, "a certificate of another authority with the same name must be rejected")
	_, err = server.Verify(asClient)
	require.Error(t, err, "a server certificate must not be valid for clients")
	require.Contains(t, script(t, "certs", folder), "exists", "a second call of the script must not change the files")
	// A folder of an earlier version gets the certificates for clients and keeps its other files.
	require.NoError(t, os.RemoveAll(filepath.Join(folder, "clients")))
	script(t, "certs", folder)
	require.Equal(t, server.Raw, certificate(t, folder, "server", "server.pem").Raw)
	_, err = certificate(t, folder, "clients", "client-1.pem").Verify(asClient)
	require.NoError(t, err)
}

// The images are built only from the folders that the Dockerfile copies, so the Dockerfile must copy each new
// dependency.
func TestDockerfileCopiesNeededFolders(t *testing.T) {
	t.Parallel()
	const module = "github.com/sse-soak/sse-soak/"
	dockerfile := read(t, "..", "..", "backend", "Dockerfile")
	out, err := exec.Command("go", "list", "-deps", "../../backend", "../../cmd/reference", "../../nginx/nginxconf").CombinedOutput()
	require.NoError(t, err, "%s", out)
	found := 0
	for path := range strings.Lines(string(out)) {
		folder, local := strings.CutPrefix(strings.TrimSpace(path), module)
		if !local {
			continue
		}
		found++
		isCopied := false
		for line := range strings.Lines(dockerfile) {
			fields := strings.Fields(line)
			isCopied = isCopied || len(fields) == 3 && fields[0] == "COPY" && strings.HasPrefix(folder+"/", fields[1])
		}
		require.True(t, isCopied, "backend/Dockerfile does not copy %s", folder)
	}
	require.Greater(t, found, 2)
}

// runRefresh runs the script with stand-ins for docker and curl that record their arguments. It returns the output of
// the script and the recorded arguments.
func runRefresh(t *testing.T, env, services, viewer string) (output, calls string) {
	t.Helper()
	bin := t.TempDir()
	docker := "#!/bin/sh\ncase \"$2\" in ps) case ' " + services + " ' in *\" $4 \"*) echo id;; esac;; *) echo \"$@\" >>'" + bin + "/calls';; esac\n" +
		"case \"$*\" in *stdin) cat >>'" + bin + "/calls';; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755))
	curl := "#!/bin/sh\nargs=\"$*\"\nwhile [ $# -gt 0 ]; do case $1 in --config) cat \"$2\";; --data) cat \"${2#@}\";; esac; shift; done >>'" + bin + "/calls'\n" +
		"echo \"$args\" | sed 's#/dev/fd/[0-9]*#FILE#g' >>'" + bin + "/calls'\n" + `case "$args" in *lookup*) echo '` + viewer + `';; esac` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "curl"), []byte(curl), 0o755))
	file := filepath.Join(bin, ".env")
	require.NoError(t, os.WriteFile(file, []byte(env), 0o600))
	cmd := exec.CommandContext(t.Context(), "./refresh", file)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(filepath.Join(bin, "calls"))
	if err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	return string(out), string(text)
}

func TestRefreshUpdatesRunningServices(t *testing.T) {
	t.Parallel()
	output, calls := runRefresh(t, "GRAFANA_PASSWORD=new\nPUBLIC_URL=http://soak.example\nHTTPS_PORT=\n", "prometheus grafana alertmanager", "")
	require.Contains(t, calls, "compose kill --signal SIGHUP prometheus\n")
	require.Contains(t, calls, "reset-admin-password --password-from-stdin\nnew\n", "the password must not be an argument, which other users can read")
	require.Contains(t, calls, "amtool alert add --alertmanager.url=http://127.0.0.1:9093 alertname=StackStarted")
	require.Contains(t, output, "http://soak.example/grafana/ (users viewer, admin)")
	require.NotContains(t, calls, "admin/users")
	require.Contains(t, output, "warning: passwords and BACKEND_TOKEN are sent unencrypted")

	output, calls = runRefresh(t, "GRAFANA_PASSWORD=new\nPUBLIC_URL=https://soak.example\nHTTPS_PORT=443\n", "prometheus", "")
	require.Equal(t, "compose kill --signal SIGHUP prometheus\n", calls)
	require.NotContains(t, output, "warning")
}

// refresh creates the user viewer once and updates its password from .env later.
func TestRefreshCreatesAViewer(t *testing.T) {
	t.Parallel()
	env := "GRAFANA_PASSWORD=secret\nGRAFANA_VIEWER_PASSWORD=look\n"
	_, calls := runRefresh(t, env, "grafana", "")
	require.Contains(t, calls, `user = "admin:secret"`+"\n"+`{"name":"viewer","login":"viewer","password":"look"}`+
		"--silent --show-error --fail --request POST --header Content-Type: application/json --config FILE --data @FILE http://127.0.0.1:3000/grafana/api/admin/users\n")
	_, calls = runRefresh(t, env, "grafana", `{"id":7,"login":"viewer"}`)
	require.Contains(t, calls, `{"password":"look"}`)
	require.Contains(t, calls, "--request PUT ")
	require.Contains(t, calls, "/grafana/api/admin/users/7/password\n")
}

// A bind mount of one file keeps the old content after an editor or git replaces the file.
func TestPrometheusMountsItsFolder(t *testing.T) {
	t.Parallel()
	require.Contains(t, read(t, "..", "..", "compose.yaml"), "- ./infra/prometheus:/etc/stack:ro")
	require.Contains(t, read(t, "..", "prometheus", "prometheus.yml"), "- files: [targets.d/*.yml]")
}
