package http1

import (
	"io"
	"net/http"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

// WriteRequest writes a request as its server expects it, or a proxy that forwards it. It adds the credentials of the URL and of the
// proxy to the header.
func WriteRequest(to io.Writer, r *http.Request, through *proxy.Proxy) error {
	if user := r.URL.User; user != nil && r.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	if !through.Forwards() {
		return r.Write(to)
	}
	if authorization := through.Authorization(); authorization != "" {
		r.Header.Set("Proxy-Authorization", authorization)
	}
	return r.WriteProxy(to)
}
