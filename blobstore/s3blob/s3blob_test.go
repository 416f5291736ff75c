package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/blobtest"
	"github.com/formsvc/toolkit/blobstore/s3blob"
	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
)

const mib = 1 << 20

func TestStore(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	var stores atomic.Int64
	blobtest.Run(t, func(t testing.TB) blobstore.Store {
		return newStoreAt(t, server, "Tests/"+strconv.FormatInt(stores.Add(1), 10), nil)
	}, blobtest.Options{
		Reopen: func(t testing.TB, s blobstore.Store) blobstore.Store {
			return newStoreAt(t, server, trimSlash(s.(*s3blob.Store).Prefix()), nil)
		},
		CutOff: func(t testing.TB, s blobstore.Store) {
			beginUpload(t, server, s.(*s3blob.Store).Prefix()+"cut-off", make([]byte, 5*mib))
		},
	})
}

func trimSlash(prefix string) string { return prefix[:len(prefix)-1] }

// newStore returns a store in the server's bucket.
func newStore(t testing.TB, server *s3test.Server, opts *s3blob.Options) *s3blob.Store {
	t.Helper()
	return newStoreAt(t, server, "", opts)
}

// newStoreAt returns a store under a prefix of the server's bucket.
func newStoreAt(t testing.TB, server *s3test.Server, prefix string, opts *s3blob.Options) *s3blob.Store {
	t.Helper()
	bucket := must(s3blob.ParseURL(server.URL(), nil))
	bucket.Prefix = prefix
	return newStoreOf(t, bucket, server, opts)
}

// patience ends a test that hangs.
const patience = 2 * time.Minute

func newStoreOf(t testing.TB, bucket s3blob.Bucket, server *s3test.Server, opts *s3blob.Options) *s3blob.Store {
	t.Helper()
	if opts == nil {
		opts = &s3blob.Options{}
	}
	if opts.Timeout == 0 { // a busy machine must not cause timeouts
		patient := *opts
		patient.Timeout, opts = patience, &patient
	}
	return must(s3blob.New(bucket, s3blob.StaticCredentials(server.AccessKey, server.SecretKey, ""), opts))
}

// newCore returns package minio's own client.
func newCore(t testing.TB, server *s3test.Server) *minio.Core {
	t.Helper()
	endpoint := must(url.Parse(server.Endpoint))
	core := must(minio.NewCore(endpoint.Host, &minio.Options{
		Creds: credentials.NewStaticV4(server.AccessKey, server.SecretKey, ""), Region: server.Region,
		BucketLookup: minio.BucketLookupPath,
	}))
	return core
}

// beginUpload leaves an incomplete upload with one part behind.
func beginUpload(t testing.TB, server *s3test.Server, object string, part []byte) {
	t.Helper()
	core := newCore(t, server)
	id := must(core.NewMultipartUpload(t.Context(), server.Bucket, object, minio.PutObjectOptions{}))
	size := int64(len(part))
	must(core.PutObjectPart(t.Context(), server.Bucket, object, id, 1, bytes.NewReader(part), size, minio.PutObjectPartOptions{}))
}

// uploads returns the incomplete uploads under a prefix of the server's bucket.
func uploads(t testing.TB, server *s3test.Server, prefix string) []string {
	t.Helper()
	page := must(newCore(t, server).ListMultipartUploads(t.Context(), server.Bucket, prefix, "", "", "", 1000))
	var found []string
	for i := range page.Uploads {
		found = append(found, page.Uploads[i].Key)
	}
	return found
}

func list(ctx context.Context, store blobstore.Store) (keys []string, err error) {
	for info, err := range store.List(ctx, "") {
		if err != nil {
			return keys, err
		}
		keys = append(keys, info.Key)
	}
	return keys, nil
}

// wantNothing checks that the bucket has neither blobs nor incomplete uploads.
func wantNothing(t testing.TB, server *s3test.Server) {
	t.Helper()
	keys, err := list(t.Context(), newStore(t, server, nil))
	if err != nil || len(keys) > 0 {
		t.Errorf("blobs are left: %v, %v", keys, err)
	}
	if left := uploads(t, server, ""); len(left) > 0 {
		t.Errorf("incomplete uploads are left: %v", left)
	}
}

func mustPut(t testing.TB, store blobstore.Store, key string, content []byte) {
	t.Helper()
	if n, err := store.Put(t.Context(), key, bytes.NewReader(content)); err != nil || n != int64(len(content)) {
		t.Fatalf("Put: %d, %v", n, err)
	}
}

func read(ctx context.Context, store blobstore.Store, key string) ([]byte, error) {
	r, _, err := store.Open(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

func wantContent(t testing.TB, store blobstore.Store, key string, want []byte) {
	t.Helper()
	got, err := read(t.Context(), store, key)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %s: %d bytes, %v; want the %d that were put", key, len(got), err, len(want))
	}
}

// pattern returns bytes without repetition.
func pattern(size int) []byte {
	b := make([]byte, size)
	for i, x := 0, uint32(1); i < size; i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

// The example needs a server, so a test runs it if there is one.
func TestExample(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	info, err := keep(t.Context(), server.URL(), s3blob.StaticCredentials(server.AccessKey, server.SecretKey, ""))
	if err != nil || info.Key != "c4/plan.txt" || info.Size != 11 {
		t.Errorf("got %+v, %v", info, err)
	}
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
