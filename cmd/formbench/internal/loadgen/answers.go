package loadgen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// A Conn is a connection to a server, with a reader of its answers.
type Conn struct {
	net.Conn
	reader *bufio.Reader
	answer fasthttp.Response
}

// Dial opens a connection on which everything must be done by the deadline.
func Dial(ctx context.Context, addr string, deadline time.Time) (*Conn, error) {
	return DialSize(ctx, addr, deadline, 32<<10) // more than most answers have
}

// DialSize is the same, and reads as many bytes at once.
func DialSize(ctx context.Context, addr string, deadline time.Time, size int) (*Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), conn.Close())
	}
	c := &Conn{Conn: conn, reader: bufio.NewReaderSize(conn, size)}
	c.answer.KeepBodyBuffer = true
	return c, nil
}

// Next reads one answer, which must have the status, and returns its body until the next one is read.
func (c *Conn) Next(want int) ([]byte, error) {
	status, err := c.read()
	if err == nil && status != want {
		err = fmt.Errorf("answered %d, want %d: %.300s", status, want, c.answer.Body())
	}
	return c.answer.Body(), err
}

func (c *Conn) read() (status int, err error) {
	if err := c.answer.Read(c.reader); err != nil {
		return 0, fmt.Errorf("read an answer: %w", err)
	}
	return c.answer.StatusCode(), nil
}

// Pour reads one answer, which must have the status, and writes its body.
func (c *Conn) Pour(want int, w io.Writer) (n int64, err error) {
	c.answer.StreamBody = true
	defer func() {
		c.answer.StreamBody = false
		if closeErr := c.answer.CloseBodyStream(); err == nil {
			err = closeErr
		}
	}()
	status, err := c.read()
	if err != nil {
		return 0, err
	}
	if status != want {
		return 0, fmt.Errorf("answered %d, want %d: %.300s", status, want, c.answer.Body())
	}
	return io.CopyBuffer(w, struct{ io.Reader }{c.answer.BodyStream()}, make([]byte, c.reader.Size()))
}

// Ask sends one request on a connection of its own and returns the body of the
// answer.
func Ask(ctx context.Context, addr string, request []byte, want int) ([]byte, error) {
	conn, err := Dial(ctx, addr, time.Now().Add(AnswerTimeout))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(request); err != nil {
		return nil, fmt.Errorf("send a request: %w", err)
	}
	return conn.Next(want)
}
