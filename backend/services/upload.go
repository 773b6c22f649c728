package services

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/sse-soak/sse-soak/backend/answer"
)

// upload responds with the size and the hash of the body, so that the client can verify that the body arrived intact.
// It does not store the body.
func upload(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return answer.NotAllowed(w, http.MethodPost)
	}
	control, deadline := http.NewResponseController(w), time.Now().Add(uploadTimeout)
	_ = control.SetReadDeadline(deadline) // unsupported in tests
	_ = control.SetWriteDeadline(deadline)
	sum := sha256.New()
	n, err := io.Copy(sum, http.MaxBytesReader(w, r.Body, maxUpload))
	if err != nil {
		return answer.BadBody(err, "an upload must be at most 4 GiB; split it")
	}
	return answer.JSON(w, http.StatusOK, map[string]any{"bytes": n, "sha256": hex.EncodeToString(sum.Sum(nil))})
}
