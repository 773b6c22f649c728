package report

import "bufio"

// Wrapped sets a text in lines of a terminal's width behind a prefix, as far in as that. An error is kept for Flush.
func Wrapped(w *bufio.Writer, prefix, text string) { printer{w}.wrapped(prefix, text) }

// Plain takes out of a text what a terminal would obey.
func Plain(s string) string { return plain(s) }
