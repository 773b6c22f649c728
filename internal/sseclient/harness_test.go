package sseclient

import "time"

// patience is the timeout of all waits in tests.
const patience = 10 * time.Second

const twoEvents = "data: a\n\ndata: b\n\n"
