// Package service compiles the description of an SSE service: how to open, resume and end a stream, how to recognise a heartbeat
// and a message, and how to publish a message.
//
// A description is data (JSON; docs/services.md has each field). [Parse] checks all of it at once and compiles the work per
// message: templates of requests, and a [Reader] that distinguishes heartbeats from messages and reads the number and the time of
// these. The compiled [Service] does not change, and any number of goroutines may use it.
//
// The package does no I/O and reads no clock. It trusts the author of a description, and no byte that a service sends.
package service
