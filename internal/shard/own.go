package shard

// WakeUps is how often an answer wakes the generator up: the connection, the request, the answer's head,
// its body, the script.
const WakeUps = 5
