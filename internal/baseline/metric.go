package baseline

// least is the change of a metric below which nobody would care, by unit.
var least = map[string]float64{"ms": 5, "MiB": 1, "%": 1}
