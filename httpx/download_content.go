package httpx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/formsvc/toolkit/formsvc"
)

// A content is the io.ReadSeeker for [http.ServeContent] over the bytes of a file. It opens them at the first Read
// after a Seek.
//
// For several ranges, ServeContent reads in a goroutine of its own, which may outlive the reply for a moment; so
// content has a lock.
type content struct {
	files  formsvc.Files
	file   *formsvc.File
	ctx    context.Context
	cancel context.CancelCauseFunc

	begun  atomic.Bool // whether the first byte was read
	length int64       // of the only range, or -1 to read up to the end; set before the first Read

	mu   sync.Mutex
	at   int64         // offset of the next byte
	body io.ReadCloser // nil unless open
	err  error         // why reading failed
}

func newContent(ctx context.Context, files formsvc.Files, f *formsvc.File) *content {
	ctx, cancel := context.WithCancelCause(ctx)
	return &content{files: files, file: f, ctx: ctx, cancel: cancel, length: -1}
}

var errContentClosed = errors.New("the answer is over")

// Seek implements io.Seeker as far as ServeContent needs it.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if whence == io.SeekEnd {
		offset += c.file.Size
	}
	c.shut()
	c.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	defer func() {
		if v := recover(); v != nil { // in a goroutine of ServeContent it would end the process
			c.err = fmt.Errorf("%w: %v\n%s", errPanic, v, debug.Stack())
			n, err = 0, c.err
		}
	}()
	if c.at >= c.file.Size {
		return 0, io.EOF
	}
	if c.body == nil {
		c.body, err = c.files.Open(c.ctx, c.file, c.at, c.length)
	}
	if err == nil {
		n, err = c.body.Read(p)
		c.at += int64(n)
	}
	if n > 0 {
		c.begun.Store(true)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
		if errors.Is(context.Cause(c.ctx), errContentClosed) { // which is why reading failed
			c.err = errContentClosed
		}
	}
	return n, err
}

// shut closes the open body.
func (c *content) shut() {
	if c.body != nil {
		_ = c.body.Close() // all wanted bytes have been read
		c.body = nil
	}
}

// close ends reading and returns the error of reading, or nil.
func (c *content) close() error {
	c.cancel(errContentClosed) // ends a Read in progress
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut()
	if c.err == nil {
		c.err = errContentClosed
	}
	if errors.Is(c.err, errContentClosed) {
		return nil
	}
	return c.err
}
