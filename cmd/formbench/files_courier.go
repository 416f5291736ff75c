package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A courier is a client of our servers.
type courier struct {
	world
	conn    net.Conn
	answers *answers
	form    bool // upload as multipart/form-data
	hashes  bool // the server answers with a hash
	release func() bool
}

// slowest is how many bytes a second a server must move; a slower one counts as
// hanging.
const slowest = 1 << 20

// courierBuffer is how much is read at once, so that reading costs little.
const courierBuffer = 1 << 20

func newCourier(ctx context.Context, s *fileScene, bytes int64) (*courier, error) {
	deadline := time.Now().Add(answerTimeout + time.Duration(bytes/slowest)*time.Second)
	conn, err := dial(ctx, s.server.addr, deadline)
	if err != nil {
		return nil, err
	}
	return &courier{
		world: s.world, conn: conn, answers: &answers{conn: conn, buf: make([]byte, courierBuffer)},
		form: s.cell.What == formWhat, hashes: s.cell.System != copySystem,
		release: context.AfterFunc(ctx, func() { _ = conn.Close() }),
	}, nil
}

func (c *courier) close() error {
	c.release()
	return c.conn.Close()
}

// Around the content of a form.
const (
	formBoundary = "formbench-0123456789abcdef"
	formBegin    = "--" + formBoundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"scan.pdf\"\r\n" +
		"Content-Type: application/pdf\r\n\r\n"
	formEnd = "\r\n--" + formBoundary + "--\r\n"
)

// uploadHead returns what comes before the content, and what comes after it.
func (c *courier) uploadHead(size int64) (before, after string) {
	header := "Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"scan.pdf\"\r\n"
	if c.form {
		header = "Content-Type: multipart/form-data; boundary=" + formBoundary + "\r\n"
		before, after = formBegin, formEnd
	}
	return fmt.Sprintf("POST %s/%s/files HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: formbench\r\nAccept: application/json\r\n"+
		"Authorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n%s",
		c.listPath(), storedID(0), c.key, header, int64(len(before))+size+int64(len(after)), before), after
}

// uploaded is what the servers answer with, and more.
type uploaded struct {
	UUID   string `json:"uuid"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func (c *courier) upload(_ context.Context, what *content) (string, error) {
	before, after := c.uploadHead(what.size)
	_, err := io.WriteString(c.conn, before)
	if err == nil {
		_, err = what.WriteTo(c.conn)
	}
	if err == nil {
		_, err = io.WriteString(c.conn, after)
	}
	// A server that refuses may answer before everything is sent.
	body, answerErr := c.answers.next(http.StatusCreated, true)
	if answerErr != nil {
		return "", fmt.Errorf("upload: %w", errors.Join(answerErr, err))
	}
	if err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	var got uploaded
	if err := json.Unmarshal(body, &got); err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	want := uploaded{UUID: got.UUID, Size: what.size}
	if c.hashes {
		want.SHA256 = what.sum
	}
	if got != want || got.UUID == "" {
		return "", fmt.Errorf("upload: answered %+v, want %+v", got, want)
	}
	return got.UUID, nil
}

func (c *courier) download(_ context.Context, id string, w io.Writer) (int64, error) {
	if _, err := c.conn.Write(c.request(http.MethodGet, "/v1/files/"+id, nil)); err != nil {
		return 0, fmt.Errorf("download: %w", err)
	}
	n, err := c.answers.pour(http.StatusOK, w)
	if err != nil {
		return n, fmt.Errorf("download: %w", err)
	}
	return n, nil
}
