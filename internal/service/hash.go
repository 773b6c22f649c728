package service

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// digest hashes a description: its JSON with the fields in the order of their names, numbers in one form and
// without white space.
func digest(text []byte) (string, error) {
	var any any
	if err := json.Unmarshal(text, &any); err != nil {
		return "", err
	}
	canonical, err := json.Marshal(any) // sorts the names of a map
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), err
}
