package sseclient

import "time"

// patience bounds whatever a test waits for.
const patience = 10 * time.Second

const twoEvents = "data: a\n\ndata: b\n\n"
