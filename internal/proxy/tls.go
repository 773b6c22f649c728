package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Trust makes the TLS clients of this process and of its children trust the certificates in the file ca, if ca is not
// "". If insecure is set, clients that obey K6_INSECURE_SKIP_TLS_VERIFY skip verification. crypto/x509 reads
// SSL_CERT_FILE once, so Trust must be called before the first handshake.
func Trust(ca string, insecure bool) error {
	if insecure {
		if err := os.Setenv("K6_INSECURE_SKIP_TLS_VERIFY", "true"); err != nil {
			return fmt.Errorf("--insecure: %w", err)
		}
	}
	if ca == "" {
		return nil
	}
	pem, err := os.ReadFile(ca) // #nosec G304 -- the user's file
	switch {
	case err != nil:
		return fmt.Errorf("--ca: %w", err)
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		return fmt.Errorf("--ca must be a file of PEM certificates, got %s", ca)
	case runtime.GOOS != "linux":
		return errors.New("--ca works on Linux only; add the certificate to the trusted certificates of the system")
	}
	if ca, err = filepath.Abs(ca); err == nil {
		err = os.Setenv("SSL_CERT_FILE", ca) // crypto/x509 still reads the system's folder of certificates
	}
	return err
}

// WithRemedy adds a remedy to an error whose cause is a certificate, a wrong scheme in the URL or a lack of IPv6. It
// returns other errors unchanged.
func WithRemedy(err error) error {
	var untrusted *tls.CertificateVerificationError
	var invalid x509.CertificateInvalidError
	var otherHost x509.HostnameError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &untrusted):
		remedy := "pass --ca FILE with the certificate of the issuing CA, or --insecure"
		if errors.As(err, &invalid) && invalid.Reason == x509.Expired || errors.As(err, &otherHost) {
			remedy = "renew the certificate, use its host in the URL, or pass --insecure"
		}
		return fmt.Errorf("untrusted certificate (%w); %s", untrusted.Err, remedy)
	case strings.Contains(err.Error(), "tls: certificate required"):
		return fmt.Errorf("the server requires a client certificate (%w); use `soak run handshake`, the only suite that presents one", err)
	case errors.As(err, &plain), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("the server does not speak TLS (%w); use http://", err)
	case strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`): // a TLS alert
		return fmt.Errorf("the server speaks TLS (%w); use https://", err)
	case LacksIPv6(err):
		return fmt.Errorf("this machine has no IPv6 address (%w); use an IPv4 address of the service, or enable IPv6", err)
	}
	return err
}
