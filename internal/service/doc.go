// Package service compiles the description of an SSE service: how to open, resume and end a stream, how to recognise a
// heartbeat and a message, and how to publish a message.
//
// A description is data (JSON; docs/services.md lists its fields). [Parse] checks the whole description and compiles
// it: requests to templates, and the rules for blocks to a [Reader], which distinguishes heartbeats from messages and
// reads the number and the time of a message. A [Service] is immutable, so any number of goroutines may use it.
//
// The package does no I/O and reads no clock. It trusts the author of a description, but no data of a service.
package service
