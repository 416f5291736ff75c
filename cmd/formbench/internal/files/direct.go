package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/formsvc/toolkit/cmd/formbench/internal/s3server"
)

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
