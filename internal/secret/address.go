package secret

import "net/url"

// Address returns a URL without its secrets. It removes the query and the fragment, and replaces the password. A user
// name without a password may be a token, so Address replaces it, too.
func Address(u *url.URL) string {
	display := *u
	display.RawQuery, display.Fragment = "", ""
	if user := display.User; user != nil {
		if _, hasPassword := user.Password(); !hasPassword {
			display.User = url.User("xxxxx")
		}
	}
	return display.Redacted()
}
