package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/s3server"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// A Conn is a connection that transfers files.
type Conn struct {
	*loadgen.Conn
	release func() bool
}

// Dial connects to a server, with a time limit for transferring this many bytes. Cancelling the context ends a
// transfer.
func Dial(ctx context.Context, addr string, bytes int64) (*Conn, error) {
	patience := loadgen.AnswerTimeout + time.Duration(bytes/slowest)*time.Second
	conn, err := loadgen.Dial(ctx, addr, time.Now().Add(patience), courierBuffer)
	if err != nil {
		return nil, err
	}
	return &Conn{conn, context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.release()
	return c.Conn.Close()
}

// Post uploads a file, as it is or as a form, and returns the body of the response, which must have the status.
func (c *Conn) Post(path, header string, form bool, what *Content, status int) ([]byte, error) {
	const (
		boundary = "formbench-0123456789abcdef"
		kind     = "Content-Type: application/pdf\r\n"
	)
	before, after := "", ""
	if form {
		header += "Content-Type: multipart/form-data; boundary=" + boundary + "\r\n"
		before = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"scan.pdf\"\r\n" + kind + "\r\n"
		after = "\r\n--" + boundary + "--\r\n"
	} else {
		header += kind + "Content-Disposition: attachment; filename=\"scan.pdf\"\r\n"
	}
	_, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: formbench\r\nAccept: application/json\r\n"+
		"%sContent-Length: %d\r\n\r\n%s", path, header, int64(len(before))+what.Size+int64(len(after)), before)
	if err == nil {
		_, err = what.WriteTo(c)
	}
	if err == nil {
		_, err = io.WriteString(c, after)
	}
	// A server that refuses may respond before everything is sent.
	body, answerErr := c.Next(status)
	if answerErr != nil || err != nil {
		return nil, fmt.Errorf("upload: %w", errors.Join(answerErr, err))
	}
	return body, nil
}

// Fetch sends a request and writes the file of the response.
func (c *Conn) Fetch(request []byte, w io.Writer) (int64, error) {
	if _, err := c.Write(request); err != nil {
		return 0, fmt.Errorf("download: %w", err)
	}
	n, err := c.Pour(http.StatusOK, w)
	if err != nil {
		return n, fmt.Errorf("download: %w", err)
	}
	return n, nil
}

// A courier is a client of our servers.
type courier struct {
	*Conn
	world  database.World
	form   bool // upload as multipart/form-data
	hashes bool // the server returns a hash
}

// slowest is the minimum rate of a server in bytes a second; a slower one counts as hanging.
const slowest = 1 << 20

// courierBuffer is the size of each read, large enough for reads to cost little.
const courierBuffer = 1 << 20

func newCourier(ctx context.Context, s *Scene, bytes int64) (*courier, error) {
	conn, err := Dial(ctx, s.Server.Addr, bytes)
	if err != nil {
		return nil, err
	}
	return &courier{Conn: conn, world: s.world, form: s.cell.What == bench.FormWhat, hashes: s.cell.System != bench.CopySystem}, nil
}

func (c *courier) Upload(_ context.Context, what *Content) (string, error) {
	path, header := c.world.ListPath()+"/"+string(fixture.StoredID(0))+"/files", "Authorization: Bearer "+c.world.Key+"\r\n"
	body, err := c.Post(path, header, c.form, what, http.StatusCreated)
	if err != nil {
		return "", err
	}
	var got server.Uploaded
	if err := json.Unmarshal(body, &got); err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	want := server.Uploaded{UUID: got.UUID, Size: what.Size}
	if c.hashes {
		want.SHA256 = what.sum
	}
	if got != want || got.UUID == "" {
		return "", fmt.Errorf("upload: answered %+v, want %+v", got, want)
	}
	return got.UUID, nil
}

func (c *courier) Download(_ context.Context, id string, w io.Writer) (int64, error) {
	return c.Fetch(c.world.Request(http.MethodGet, "/v1/files/"+id, nil), w)
}

// A direct is a client of an S3 server, with the defaults of minio-go.
type direct struct {
	client *minio.Client
	stored int
}

func newDirect(s *s3server.Server) (*direct, error) {
	client, err := minio.New(strings.TrimPrefix(s.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(s3server.Key, s3server.Key, ""), Region: s3server.Region,
	})
	if err != nil {
		return nil, fmt.Errorf("minio-go: %w", err)
	}
	return &direct{client: client}, nil
}

// Close implements [mover].
func (d *direct) Close() error { return nil }

func (d *direct) Upload(ctx context.Context, c *Content) (string, error) {
	if c.Size != int64(len(c.block)) {
		return "", errors.New("minio-go: the content is not in memory")
	}
	d.stored++
	id := strconv.Itoa(d.stored)
	info, err := d.client.PutObject(ctx, s3server.Bucket, id, bytes.NewReader(c.block), c.Size, minio.PutObjectOptions{})
	if err == nil && info.Size != c.Size {
		err = fmt.Errorf("stored %d bytes of %d", info.Size, c.Size)
	}
	if err != nil {
		return "", fmt.Errorf("minio-go: %w", err)
	}
	return id, nil
}

func (d *direct) Download(ctx context.Context, id string, w io.Writer) (int64, error) {
	object, err := d.client.GetObject(ctx, s3server.Bucket, id, minio.GetObjectOptions{})
	if err != nil {
		return 0, fmt.Errorf("minio-go: %w", err)
	}
	n, err := io.Copy(w, object)
	if err := errors.Join(err, object.Close()); err != nil {
		return n, fmt.Errorf("minio-go: %w", err)
	}
	return n, nil
}
