package fileblob

import (
	"context"
	"io"
	"os"
)

// A reader reads a part of a file.
type reader struct {
	ctx  context.Context
	f    *os.File
	left int64
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.f.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if err == io.EOF { // somebody has cut the file
		return n, io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, failure(err)
	}
	return n, nil
}

// Close implements io.Closer.
func (r *reader) Close() error { return r.f.Close() }
