package services

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"time"
)

// A receipt says what arrived of an upload, so that the client can compare.
type receipt struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// upload hashes the body as it comes and keeps none of it.
func (h *Handler) upload(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		h.fail(w, http.StatusMethodNotAllowed, "an upload is a POST")
		return
	}
	control, deadline := http.NewResponseController(w), time.Now().Add(uploadTimeout)
	_ = control.SetReadDeadline(deadline) // without them in tests
	_ = control.SetWriteDeadline(deadline)
	sum := sha256.New()
	n, err := io.Copy(sum, http.MaxBytesReader(w, r.Body, maxUpload))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		h.fail(w, http.StatusRequestEntityTooLarge, "an upload has at most 4 GiB; split it")
	case err != nil:
		h.fail(w, http.StatusBadRequest, "the body could not be read; send it whole and in time")
	default:
		writeJSON(w, receipt{Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))})
	}
}
