package compare

// least is the change of a metric that is too small to matter, by unit.
var least = map[string]float64{"ms": 5, "µs": 1, "MiB": 1, "%": 1}
