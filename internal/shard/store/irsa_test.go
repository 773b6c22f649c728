package store

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An stsServer is a Security Token Service, which grants a role for the token of a service account.
type stsServer struct {
	t        *testing.T
	token    atomic.Value  // the accepted token, a string
	lifetime time.Duration // of the credentials
	requests atomic.Int64
	refuses  bool
	drops    atomic.Int64 // number of requests to close without a response
}

const runnersRole = "arn:aws:iam::123456789012:role/sse-soak-runner"

// podOfEKS sets the environment of a pod whose service account is annotated with a role: EKS adds these variables and
// the file of the token. It removes all other credentials, and returns the path of the file, which the caller writes.
func podOfEKS(t *testing.T, sts *stsServer) (tokenFile string) {
	t.Helper()
	sts.t = t
	server := httptest.NewServer(sts)
	t.Cleanup(server.Close)
	tokenFile = filepath.Join(t.TempDir(), "token")
	for name, value := range map[string]string{
		"AWS_ROLE_ARN": runnersRole, "AWS_WEB_IDENTITY_TOKEN_FILE": tokenFile, "AWS_STS_REGIONAL_ENDPOINTS": "regional", "AWS_REGION": "eu-central-1",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_ENDPOINT_URL_STS": server.URL,
	} {
		t.Setenv(name, value)
	}
	return tokenFile
}

func (s *stsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.drops.Add(-1) >= 0 {
		panic(http.ErrAbortHandler)
	}
	n := s.requests.Add(1)
	w.Header().Set("Content-Type", "text/xml")
	if s.refuses || r.FormValue("Action") != "AssumeRoleWithWebIdentity" || r.FormValue("RoleArn") != runnersRole || r.FormValue("WebIdentityToken") != s.token.Load() {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>`)
		return
	}
	fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
		`<AccessKeyId>ASIA%d</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session-%d</SessionToken><Expiration>%s</Expiration>`+
		`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, n, n, time.Now().Add(s.lifetime).UTC().Format(time.RFC3339))
}

// openInEKS opens a location as a pod does. The environment has the address of this server, because endpoint= in the
// location would apply to STS as well.
func (s *s3Server) openInEKS(t *testing.T, path string) Store {
	t.Helper()
	t.Setenv("AWS_ENDPOINT_URL_S3", s.url)
	b, err := Create(t.Context(), "s3://"+path+"?region=eu-central-1&use_path_style=true")
	require.NoError(t, err)
	b.(*bucket).pause = time.Millisecond
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// requireRole makes the server accept only requests with the role that the policy in docs/distributed.md allows.
func (s *s3Server) requireRole(sts *stsServer) {
	intercept := func(w http.ResponseWriter, r *http.Request) bool {
		n := sts.requests.Load()
		hasRole := strings.Contains(r.Header.Get("Authorization"), fmt.Sprintf("Credential=ASIA%d/", n)) &&
			r.Header.Get("X-Amz-Security-Token") == fmt.Sprintf("session-%d", n)
		if hasRole && r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/soaks/soak/") {
			return false
		}
		refuse(http.StatusForbidden, "AccessDenied")(w, r)
		return true
	}
	s.intercept.Store(&intercept)
}

// podInRole sets the environment of a pod with a token that STS accepts. It returns the file of the token, a server,
// and a location of the server that only the role may write to.
func podInRole(t *testing.T, sts *stsServer, token string) (file string, server *s3Server, b Store) {
	t.Helper()
	sts.token.Store(token)
	file = podOfEKS(t, sts)
	require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
	server = startS3(t)
	b = server.openInEKS(t, "soaks/soak/aws-1")
	server.requireRole(sts)
	return file, server, b
}

// A pod of EKS writes its shard in the role of its service account (IRSA), which may write below one prefix only.
func TestServiceAccountRole(t *testing.T) {
	sts := &stsServer{lifetime: time.Hour}
	_, server, b := podInRole(t, sts, "token of the pod")
	require.NoError(t, b.Put(withTimeout(t, time.Minute), "shard", []byte("one")))
	require.NoError(t, b.Put(withTimeout(t, time.Minute), "shard", []byte("a checkpoint")))
	require.EqualValues(t, 1, sts.requests.Load(), "the credentials must be cached until they expire")
	require.ErrorContains(t, server.openInEKS(t, "soaks/elsewhere").Put(withTimeout(t, time.Minute), "shard", nil), "access denied; grant the credentials s3:PutObject")
	_, err := b.Names(withTimeout(t, time.Minute))
	require.ErrorContains(t, err, "access denied")
	server.intercept.Store(nil)
	require.Equal(t, "a checkpoint", get(t, b, "shard"))
}

// A token is valid for a day and credentials for an hour: a soak may run longer than both.
func TestRoleIsRenewedWhenItsCredentialsExpire(t *testing.T) {
	sts := &stsServer{lifetime: time.Second}
	file, _, b := podInRole(t, sts, "first")
	require.NoError(t, b.Put(withTimeout(t, time.Minute), "shard", []byte("one")))
	sts.token.Store("second") // the kubelet writes another token
	require.NoError(t, os.WriteFile(file, []byte("second"), 0o600))
	time.Sleep(1100 * time.Millisecond) // the SDK has no clock that a test can set
	require.NoError(t, b.Put(withTimeout(t, time.Minute), "shard", []byte("two")))
	require.Greater(t, sts.requests.Load(), int64(1))
}

// A runner must not lose its shard because STS fails for some seconds at the end of the run.
func TestRoleRequestsAreRetried(t *testing.T) {
	sts := &stsServer{lifetime: time.Hour}
	_, _, b := podInRole(t, sts, "token")
	sts.drops.Store(4) // the SDK itself makes three of these attempts
	var retries []string
	ctx := OnRetry(withTimeout(t, time.Minute), func(sentence string) { retries = append(retries, sentence) })
	require.NoError(t, b.Put(ctx, "shard", []byte("one")))
	require.Len(t, retries, 1)
}

func TestRefusedRole(t *testing.T) {
	sts := &stsServer{refuses: true}
	file := podOfEKS(t, sts)
	require.NoError(t, os.WriteFile(file, []byte("token"), 0o600))
	err := startS3(t).openInEKS(t, "soaks/soak/aws-1").Put(withTimeout(t, time.Minute), "shard", nil)
	require.ErrorContains(t, err, "the role of the service account is refused; add this cluster and the account soak-runner to its trust policy (docs/distributed.md)")
	require.EqualValues(t, 1, sts.requests.Load(), "a permanent error must not be retried")

	require.NoError(t, os.Remove(file))
	err = startS3(t).openInEKS(t, "soaks/soak/aws-1").Put(withTimeout(t, time.Minute), "shard", nil)
	require.ErrorContains(t, err, "the token of the service account is unreadable")
}
