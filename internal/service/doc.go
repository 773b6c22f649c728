// Package service compiles the description of an SSE service. A description states how to open, resume and end a
// stream, how to recognize heartbeats and messages, and how to publish a message. It is data (JSON; docs/services.md
// lists its fields).
//
// [Parse] checks a description and compiles its requests into templates. A [Reader] classifies blocks, and reads the
// number and the time of a message. A [Service] is immutable, so any number of goroutines may use it.
//
// The package does no I/O and reads no clock. It trusts the author of a description, but not the data that a service
// sends.
package service
