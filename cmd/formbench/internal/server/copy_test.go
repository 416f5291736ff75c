package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// TestCopiersReturnUploads checks that both references return what they received, and that the careful one hashes it.
func TestCopiersReturnUploads(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("content "), 12_500)
	hash := sha256.Sum256(content)
	sum := hex.EncodeToString(hash[:])
	for _, careful := range []bool{false, true} {
		handler, closeDir, err := newCopier(t.TempDir(), careful)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = closeDir() })
		for i := range 2 {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/campaigns/c/responses/r/files", bytes.NewReader(content)))
			want := Uploaded{UUID: strconv.Itoa(i + 1), Size: int64(len(content))}
			if careful {
				want.SHA256 = sum
			}
			var got Uploaded
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusCreated || got != want {
				t.Fatalf("upload %d: %d, %+v, %v", i, w.Code, got, err)
			}
			w = httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/files/"+got.UUID, nil))
			if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), content) {
				t.Fatalf("download %d: %d, %d bytes", i, w.Code, w.Body.Len())
			}
		}
	}
}
