package s3blob_test

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
)

// benchSize is the default size limit of files in the forms service.
const benchSize = 100 << 20

// stream hides the other methods of a bytes.Reader, like the body of an HTTP request.
type stream struct{ io.Reader }

func BenchmarkPut(b *testing.B) {
	server := s3test.Start(b)
	b.Run("store", func(b *testing.B) {
		store := newStore(b, server, nil)
		bench(b, func(key string, content io.Reader) error {
			_, err := store.Put(b.Context(), key, content)
			return err
		})
	})
	b.Run("minio-go", func(b *testing.B) {
		client := newCore(b, server).Client
		bench(b, func(key string, content io.Reader) error {
			_, err := client.PutObject(b.Context(), server.Bucket, key, content, benchSize, minio.PutObjectOptions{})
			return err
		})
	})
}

func bench(b *testing.B, put func(key string, content io.Reader) error) {
	b.Helper()
	content := pattern(benchSize)
	b.SetBytes(benchSize)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		if err := put(b.Name()[len("BenchmarkPut/"):]+strconv.Itoa(n), stream{bytes.NewReader(content)}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	server := s3test.Start(b)
	store := newStore(b, server, nil)
	if _, err := store.Put(b.Context(), "blob", bytes.NewReader(pattern(benchSize))); err != nil {
		b.Fatal(err)
	}
	client := newCore(b, server).Client
	for name, open := range map[string]func(context.Context) (io.ReadCloser, error){
		"store": func(ctx context.Context) (io.ReadCloser, error) {
			r, _, err := store.Open(ctx, "blob", 0, -1)
			return r, err
		},
		"minio-go": func(ctx context.Context) (io.ReadCloser, error) {
			return client.GetObject(ctx, server.Bucket, "blob", minio.GetObjectOptions{})
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(benchSize)
			b.ReportAllocs()
			for b.Loop() {
				r, err := open(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, stream{r}, make([]byte, 256<<10))
				if err != nil || n != benchSize {
					b.Fatal(n, err)
				}
				_ = r.Close()
			}
		})
	}
}
