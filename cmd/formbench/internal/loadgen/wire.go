package loadgen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Answers reads the answers on one connection. It knows as much of HTTP/1.1 as
// the servers here use and refuses the rest, since a client that costs more
// than the server would be measured instead of it.
type Answers struct {
	conn       net.Conn
	buf        []byte
	start, end int // what is read and not used yet
}

// NewAnswers returns one that reads as much at once as most answers have.
func NewAnswers(conn net.Conn) *Answers { return NewAnswersSize(conn, 32<<10) }

// NewAnswersSize returns one that reads as many bytes at once.
func NewAnswersSize(conn net.Conn, size int) *Answers {
	return &Answers{conn: conn, buf: make([]byte, size)}
}

// fill reads what has arrived.
func (a *Answers) fill() error {
	if a.start == a.end {
		a.start, a.end = 0, 0
	}
	if a.end == len(a.buf) {
		if a.start == 0 {
			return errors.New("the head of an answer is too long")
		}
		a.end = copy(a.buf, a.buf[a.start:a.end])
		a.start = 0
	}
	n, err := a.conn.Read(a.buf[a.end:])
	a.end += n
	if n == 0 && err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	return nil
}

// Next reads one answer, which must have the status, and returns its body when
// it is to be kept.
func (a *Answers) Next(want int, keep bool) ([]byte, error) {
	status, length, err := a.Head()
	if err != nil {
		return nil, err
	}
	body, err := a.Body(length, keep || status != want)
	if err != nil {
		return nil, err
	}
	if status != want {
		return nil, fmt.Errorf("answered %d, want %d: %.300s", status, want, body)
	}
	return body, nil
}

// Head reads the status line and the header.
func (a *Answers) Head() (status, length int, err error) {
	size := -1
	for size < 0 {
		if size = bytes.Index(a.buf[a.start:a.end], []byte("\r\n\r\n")); size < 0 {
			if err := a.fill(); err != nil {
				return 0, 0, err
			}
		}
	}
	head := a.buf[a.start : a.start+size+2]
	a.start += size + 4
	if len(head) < len("HTTP/1.1 200") || string(head[:len("HTTP/1.1 ")]) != "HTTP/1.1 " {
		return 0, 0, fmt.Errorf("not an answer: %.80q", head)
	}
	for _, digit := range head[len("HTTP/1.1 "):len("HTTP/1.1 200")] {
		status = status*10 + int(digit) - '0'
	}
	length, err = contentLength(head)
	return status, length, err
}

func contentLength(head []byte) (int, error) {
	const name = "\r\nContent-Length: "
	at := bytes.Index(head, []byte(name))
	if at < 0 && bytes.Contains(head, []byte("\r\nTransfer-Encoding: chunked\r\n")) {
		return chunked, nil
	}
	if at < 0 {
		return 0, fmt.Errorf("an answer without Content-Length: %.300q", head)
	}
	value := head[at+len(name):]
	value = value[:bytes.IndexByte(value, '\r')]
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("an answer with Content-Length %.20q", value)
	}
	return n, nil
}

// Body reads as many bytes, or chunks, and returns them or drops them.
func (a *Answers) Body(length int, keep bool) (body []byte, err error) {
	if length == chunked {
		return a.chunks(keep)
	}
	for length > 0 {
		if a.start == a.end {
			if err := a.fill(); err != nil {
				return nil, err
			}
		}
		n := min(length, a.end-a.start)
		if keep {
			body = append(body, a.buf[a.start:a.start+n]...)
		}
		a.start += n
		length -= n
	}
	return body, nil
}

// Pour reads one answer, which must have the status, and writes its body.
func (a *Answers) Pour(want int, w io.Writer) (int64, error) {
	status, length, err := a.Head()
	if err != nil {
		return 0, err
	}
	if status != want {
		body, err := a.Body(length, true)
		return 0, errors.Join(fmt.Errorf("answered %d, want %d: %.300s", status, want, body), err)
	}
	if length == chunked {
		return 0, errors.New("a file in chunks, which does not say how long it is")
	}
	for left := length; left > 0; {
		if a.start == a.end {
			if err := a.fill(); err != nil {
				return int64(length - left), err
			}
		}
		n, err := w.Write(a.buf[a.start:min(a.end, a.start+left)])
		a.start += n
		if left -= n; err != nil {
			return int64(length - left), err
		}
	}
	return int64(length), nil
}

// Dial opens a connection on which everything must be done by the deadline.
func Dial(ctx context.Context, addr string, deadline time.Time) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), conn.Close())
	}
	return conn, nil
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
	return NewAnswers(conn).Next(want, true)
}
