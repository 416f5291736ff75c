// Package recorder records what a handler sends, for logs, metrics and traces.
package recorder

import "net/http"

// A Writer passes on a response, and records it.
type Writer struct {
	http.ResponseWriter

	Status int   // 0 until there is one
	Bytes  int64 // of the body that were written
}

// Serve serves a request and calls ended after it, also when the handler panics to cut off its response.
func Serve(next http.Handler, w http.ResponseWriter, r *http.Request, ended func(*Writer)) {
	recorded := &Writer{ResponseWriter: w}
	defer func() { ended(recorded) }()
	next.ServeHTTP(recorded, r)
	if recorded.Status == 0 {
		recorded.Status = http.StatusOK // as net/http then does
	}
}

// WriteHeader records the status, unless it is an interim one.
func (w *Writer) WriteHeader(status int) {
	if w.Status == 0 && status >= http.StatusOK {
		w.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body, with status 200 if there was none.
func (w *Writer) Write(p []byte) (int, error) {
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.Bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
