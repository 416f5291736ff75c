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

// A content is the io.ReadSeeker for [http.ServeContent] over the bytes of a
// file. It opens them at the first Read after a Seek, and only then.
//
// Where several ranges are asked for, ServeContent reads in a goroutine of its
// own, which may go on for a moment after the answer; hence the lock.
type content struct {
	files  formsvc.Files
	file   *formsvc.File
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	at     int64         // the next byte
	length int64         // of what is to be read, or -1 for up to the end
	body   io.ReadCloser // nil unless open
	begins bool          // whether there was a first byte
	err    error         // why the bytes can't be read
}

func newContent(ctx context.Context, files formsvc.Files, f *formsvc.File) *content {
	ctx, cancel := context.WithCancelCause(ctx)
	return &content{files: files, file: f, ctx: ctx, cancel: cancel, length: -1}
}

var errContentClosed = errors.New("the answer is over")

// expect says how many bytes will be read after the last Seek, so that no more
// are asked of the blob store.
func (c *content) expect(length int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.length = length
}

// begun reports whether the first byte could be read.
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
		if v := recover(); v != nil { // in a goroutine that is not ours it would end the process
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

// judge tells an error from the end that close puts to reading.
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

// shut closes what is open.
func (c *content) shut() {
	if c.body != nil {
		_ = c.body.Close() // all that was asked for has been read, or nobody wants it
		c.body = nil
	}
}

// close ends reading and returns why the bytes could not be read, or nil.
func (c *content) close() error {
	c.cancel(errContentClosed) // a Read that is under way ends
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
