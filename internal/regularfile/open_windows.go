package regularfile

// NoFollow is unix only; Open looks at the file before it opens it.
const NoFollow = 0

const nonBlock = 0
