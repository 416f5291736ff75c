package httpx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

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

	mu     sync.Mutex
	at     int64         // offset of the next byte
	length int64         // of the range to read, or -1 for up to the end
	body   io.ReadCloser // nil unless open
	begins bool          // whether the first byte was read
	err    error         // why reading failed
}

func newContent(ctx context.Context, files formsvc.Files, f *formsvc.File) *content {
	ctx, cancel := context.WithCancelCause(ctx)
	return &content{files: files, file: f, ctx: ctx, cancel: cancel, length: -1}
}

var errContentClosed = errors.New("the answer is over")

// expect sets how many bytes will be read after the last Seek, so that no more are requested from the blob store.
func (c *content) expect(length int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.length = length
}

// begun reports whether the first byte was read.
func (c *content) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begins
}

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
		if err := c.open(); err != nil {
			c.err = c.judge(err)
			return 0, c.err
		}
	}
	n, err = c.body.Read(p)
	c.at += int64(n)
	c.begins = c.begins || n > 0
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = c.judge(err)
	}
	return n, err
}

// judge tells errors from the end of reading that close causes.
func (c *content) judge(err error) error {
	if errors.Is(context.Cause(c.ctx), errContentClosed) {
		return errContentClosed
	}
	return err
}

func (c *content) open() error {
	body, err := c.files.Open(c.ctx, c.file, c.at, c.length)
	if err != nil {
		return err
	}
	c.body = body
	return nil
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
