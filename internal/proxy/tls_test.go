package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A remedy must fit the fault: --ca makes neither an expired certificate nor one of another host valid.
func TestRemediesForCertificates(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"pass --ca FILE with the certificate of the issuing CA, or --insecure": &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"; renew the certificate, use its host in the URL, or pass --insecure": &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}},
		"); renew the certificate, use its host in the URL, or pass":           &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}},
		"the server requires a client certificate (remote error":               errors.New("remote error: tls: certificate required"),
	} {
		require.ErrorContains(t, WithRemedy(err), want)
	}
}
