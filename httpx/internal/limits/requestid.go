package limits

import (
	"crypto/rand"
	"net/http"
	"regexp"
)

// RequestID returns the client's X-Request-Id if it is well-formed, or a new one.
func RequestID(r *http.Request) string {
	if values := r.Header["X-Request-Id"]; len(values) == 1 && requestIDForm.MatchString(values[0]) {
		return values[0]
	}
	return rand.Text()
}

// requestIDForm is a well-formed X-Request-Id.
var requestIDForm = regexp.MustCompile(`^[!-~]{1,200}$`)
