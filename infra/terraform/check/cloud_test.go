//go:build aws

package check

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/certificate"
	"github.com/sse-soak/sse-soak/test/offline"
	"github.com/sse-soak/sse-soak/test/untested"
)

// The credentials of the host's role.
var credentials = aws.Credentials{AccessKeyID: "ASIATEST", SecretAccessKey: "secret/of+the/role", SessionToken: "session+token/=="}

// A cloud simulates the part of AWS that a host uses during its setup: the metadata service, parameters and a bucket.
// It rejects requests whose signature differs from the result of AWS's own signer.
type cloud struct {
	t        *testing.T
	metadata *httptest.Server
	api      *httptest.Server // TLS

	mu         sync.Mutex
	parameters map[string]string
	files      map[string]string // responses to GET by URL without scheme; requests to a bucket must be signed
	rejections []string
}

// cloud starts a cloud that the hosts of the site can reach.
func (s *site) cloud(t *testing.T, parameters ...string) *cloud {
	c := &cloud{t: t, parameters: map[string]string{}, files: map[string]string{}}
	for _, name := range parameters {
		c.parameters[name] = "pending"
	}
	c.metadata = httptest.NewUnstartedServer(http.HandlerFunc(c.serveMetadata))
	c.api = httptest.NewUnstartedServer(http.HandlerFunc(c.serveAPI))
	c.api.TLS = &tls.Config{Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12}
	for _, server := range []*httptest.Server{c.metadata, c.api} {
		l, err := net.Listen("tcp", net.JoinHostPort(s.gateway, "0"))
		require.NoError(t, err)
		require.NoError(t, server.Listener.Close())
		server.Listener = l
		t.Cleanup(server.Close)
	}
	c.metadata.Start()
	c.api.StartTLS()
	return c
}

// instanceID is the id of every host of these tests.
const instanceID = "i-0123456789abcdef0"

// serveMetadata serves version 2 of the metadata service: no response without a token.
func (c *cloud) serveMetadata(w http.ResponseWriter, r *http.Request) {
	const token = "token-of-the-metadata-service"
	if r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" {
		fmt.Fprint(w, token)
		return
	}
	if r.Header.Get("X-Aws-Ec2-Metadata-Token") != token {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	switch strings.TrimPrefix(r.URL.Path, "/latest/meta-data/") {
	case "iam/security-credentials/":
		fmt.Fprint(w, "role-of-the-host")
	case "iam/security-credentials/role-of-the-host":
		_ = json.NewEncoder(w).Encode(map[string]string{
			"AccessKeyId": credentials.AccessKeyID, "SecretAccessKey": credentials.SecretAccessKey, "Token": credentials.SessionToken,
		})
	case "instance-id":
		fmt.Fprint(w, instanceID)
	case "public-ipv4":
		fmt.Fprint(w, "203.0.113.20")
	case "local-ipv4":
		fmt.Fprint(w, "10.20.0.11")
	default:
		http.NotFound(w, r)
	}
}

// serveAPI serves the requests over TLS: files of a bucket, and parameters.
func (c *cloud) serveAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		c.serveParameters(w, r)
		return
	}
	if strings.HasPrefix(r.Host, bucketHost) {
		if err := verify(r, nil); err != nil {
			c.reject(w, http.StatusForbidden, "AccessDenied", err.Error())
			return
		}
	}
	file, ok := c.files[r.Host+r.URL.Path]
	if !ok {
		c.reject(w, http.StatusNotFound, "NoSuchKey", r.Host+r.URL.Path)
		return
	}
	fmt.Fprint(w, file)
}

// serveParameters serves the parameter store of Systems Manager.
func (c *cloud) serveParameters(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = verify(r, body)
	}
	if err != nil {
		c.reject(w, http.StatusForbidden, "AccessDeniedException", err.Error())
		return
	}
	var request struct {
		Name, Value string
		Overwrite   bool
	}
	if err := json.Unmarshal(body, &request); err != nil {
		c.reject(w, http.StatusBadRequest, "ValidationException", err.Error())
		return
	}
	c.mu.Lock()
	value, known := c.parameters[request.Name]
	c.mu.Unlock()
	switch action := r.Header.Get("X-Amz-Target"); {
	case !known:
		c.reject(w, http.StatusBadRequest, "ParameterNotFound", request.Name)
	case action == "AmazonSSM.GetParameter":
		_ = json.NewEncoder(w).Encode(map[string]any{"Parameter": map[string]string{"Name": request.Name, "Value": value}})
	case action == "AmazonSSM.PutParameter" && request.Overwrite && request.Value != "":
		c.mu.Lock()
		c.parameters[request.Name] = request.Value
		c.mu.Unlock()
		fmt.Fprint(w, `{"Version":2}`)
	default:
		c.reject(w, http.StatusBadRequest, "ValidationException", action)
	}
}

func (c *cloud) reject(w http.ResponseWriter, status int, kind, reason string) {
	c.mu.Lock()
	c.rejections = append(c.rejections, kind+": "+reason)
	c.mu.Unlock()
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": kind, "message": reason})
}

func (c *cloud) parameter(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parameters[name]
}

func (c *cloud) store(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parameters[name] = value
}

// verify returns an error if the signature of a request is wrong. It signs a copy of the request with the headers that
// the request lists as signed, and compares the signatures.
func verify(r *http.Request, body []byte) error {
	authorization := r.Header.Get("Authorization")
	var scope, signedHeaders string
	for part := range strings.SplitSeq(strings.TrimPrefix(authorization, "AWS4-HMAC-SHA256 "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			scope = value
		case "SignedHeaders":
			signedHeaders = value
		}
	}
	fields := strings.Split(scope, "/")
	if len(fields) != 5 {
		return fmt.Errorf("no signature in %q", authorization)
	}
	request, err := http.NewRequest(r.Method, "https://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(signedHeaders, ";") {
		if name != "host" {
			request.Header.Set(name, r.Header.Get(name))
		}
	}
	if request.Header.Get("X-Amz-Security-Token") != credentials.SessionToken {
		return fmt.Errorf("the session token is missing or not signed: %s", signedHeaders)
	}
	signingTime, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	asS3 := func(o *signer.SignerOptions) { o.DisableURIPathEscaping = fields[3] == "s3" }
	err = signer.NewSigner(asS3).SignHTTP(context.Background(), credentials, request, hex.EncodeToString(sum[:]), fields[3], fields[2], signingTime)
	if err != nil {
		return err
	}
	if want := request.Header.Get("Authorization"); signature(want) != signature(authorization) {
		return fmt.Errorf("the signature is wrong: %s instead of %s", authorization, want)
	}
	return nil
}

func signature(authorization string) string {
	_, s, _ := strings.Cut(authorization, "Signature=")
	return s
}

const debianImage = "soak-test/debian:12"

// needsMachines skips a test if this machine cannot boot a host.
func needsMachines(t *testing.T) {
	t.Helper()
	offline.NeedDocker(t, "compose", "buildx")
	needs(t, "debootstrap", "apt-get install debootstrap")
	if os.Geteuid() != 0 {
		untested.Skip(t, "creating and booting a host needs root")
	}
}

// A site has the image, the network and the certificates for hosts.
type site struct {
	image, network, gateway string
	certificate             tls.Certificate
	authorities             []byte // certificates that a host trusts, in PEM
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	s.network, s.gateway = network(t)
	s.image = buildHost(t, s.network)
	ca := certificate.NewAuthority(t)
	s.certificate = *ca.Server(apiHost, bucketHost)
	authority, _ := certificate.PEM(t, ca.Certificate)
	authorities, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	require.NoError(t, err)
	s.authorities = append(authorities, authority...)
	return s
}

// network creates a network for the test, and returns the address of this machine in it.
func network(t *testing.T) (name, gateway string) {
	t.Helper()
	name = fmt.Sprintf("soak-aws-test-%d", time.Now().UnixNano())
	run(t, ".", "docker", "network", "create", name)
	t.Cleanup(func() { run(t, ".", "docker", "network", "rm", name) })
	gateway = strings.TrimSpace(run(t, ".", "docker", "network", "inspect", name, "-f", "{{(index .IPAM.Config 0).Gateway}}"))
	return name, gateway
}

// buildHost builds the image of an empty host, once for each version of its Dockerfile.
func buildHost(t *testing.T, network string) (image string) {
	t.Helper()
	started := time.Now()
	dockerfile, err := os.ReadFile("testdata/host/Dockerfile")
	require.NoError(t, err)
	image = fmt.Sprintf("soak-test/host:%x", sha256.Sum256(dockerfile))[:30]
	if exec.Command("docker", "image", "inspect", image).Run() == nil {
		return image
	}
	if exec.Command("docker", "image", "inspect", debianImage).Run() != nil {
		rootfs := filepath.Join(t.TempDir(), "rootfs")
		run(t, ".", "debootstrap", "--variant=minbase", "bookworm", rootfs)
		authorities, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(rootfs, "etc/ssl/certs"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(rootfs, "etc/ssl/certs/ca-certificates.crt"), authorities, 0o644))
		run(t, ".", "sh", "-c", fmt.Sprintf("tar -C %s -c . | docker import - %s", rootfs, debianImage))
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/host")))
	for name, plugin := range map[string]string{"docker-compose-v2": "docker-compose", "docker-buildx": "docker-buildx"} {
		packagePlugin(t, dir, name, plugin)
	}
	run(t, dir, "env", "DOCKER_BUILDKIT=0", "docker", "build", "-q", "--network", network, "-t", image, ".")
	t.Logf("built an empty host in %v", time.Since(started).Round(time.Second))
	return image
}

// packagePlugin builds NAME.deb, which contains a plugin of this machine's Docker.
func packagePlugin(t *testing.T, dir, name, plugin string) {
	t.Helper()
	var from string
	for _, folder := range []string{filepath.Join(os.Getenv("HOME"), ".docker/cli-plugins"), "/usr/libexec/docker/cli-plugins", "/usr/lib/docker/cli-plugins"} {
		if _, err := os.Stat(filepath.Join(folder, plugin)); err == nil {
			from = filepath.Join(folder, plugin)
		}
	}
	require.NotEmpty(t, from, "this machine's Docker has no plugin %s", plugin)
	tree := filepath.Join(dir, name)
	target := filepath.Join(tree, "usr/libexec/docker/cli-plugins")
	require.NoError(t, os.MkdirAll(target, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "DEBIAN"), 0o755))
	run(t, dir, "install", "-m", "755", from, target)
	control := "Package: " + name + "\nVersion: 99\nArchitecture: all\nMaintainer: test <test@example.com>\nDescription: " + plugin + " of this machine\n"
	require.NoError(t, os.WriteFile(filepath.Join(tree, "DEBIAN/control"), []byte(control), 0o644))
	run(t, dir, "dpkg-deb", "-Znone", "-b", tree, filepath.Join(dir, name+".deb"))
	require.NoError(t, os.RemoveAll(tree))
}
