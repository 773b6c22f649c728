package safefile

// NoFollow has no effect on Windows. Open checks the type of the file before it opens the file.
const NoFollow = 0

// nonBlock has no effect on Windows.
const nonBlock = 0
