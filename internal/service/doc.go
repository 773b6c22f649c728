// Package service compiles the description of an SSE service: how a stream of it is opened, resumed and
// ended, what a heartbeat and a message look like, and how a message is published.
//
// A description is data (JSON; docs/services.md has each field). [Parse] checks all of it at once and
// compiles what happens per message: templates of requests, and a [Reader] that tells heartbeats from
// messages and takes the number and the time out of them. The compiled [Service] never changes, may be
// used by any number of goroutines, and allocates nothing per message.
//
// The package does no I/O and knows no clock. It trusts the description as far as its author is trusted
// with the load, and no byte of what a service sends.
package service
