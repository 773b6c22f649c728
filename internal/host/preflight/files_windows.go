package preflight

// openFiles returns 0, because Windows has no limit on open files per process.
func openFiles() uint64 { return 0 }
