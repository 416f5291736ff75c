// Package s3blob keeps blobs in a bucket of Amazon S3 or of a server that
// speaks its protocol.
//
// The blob k is the object PREFIX/k. The server checks what it gets against a
// SHA-256 (http) or a CRC-32C (https) that was made here. Large blobs go in
// parts; memory is bounded, however many Puts are under way
// ([Options.Memory]).
//
// A blob is made exclusively by the condition "If-None-Match: *", which AWS and
// most servers know, for the last request of a large blob too. With a server
// that ignores it, two Puts at once under one key may both return nil. The server
// must keep the metadata of objects: by it a Put knows its own.
//
// A Put whose last answer was lost fails with [blobstore.ErrUnavailable], one
// whose context ended while it waited for that answer with the context's error;
// the blob may be there then. The last modification of a large blob is, on AWS, the
// beginning of its Put. A Put that is cut off leaves an incomplete upload, which
// is not a blob and costs room until [Store.Clean] removes it; a rule of the
// bucket that aborts incomplete uploads after some days does that too.
//
// The keys in use must be allowed to get, put and delete objects, to list the
// bucket (without that AWS says 403 of what isn't there), and to list and abort
// its multipart uploads.
package s3blob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/formsvc/toolkit/blobstore"
)

// Defaults of [Options].
const (
	DefaultPartSize = 5 << 20 // the least that S3 takes for a part that isn't the last
	DefaultMemory   = 64 << 20
	DefaultTimeout  = 10 * time.Second
)

// Limits of S3 (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
const (
	minPartSize = 5 << 20
	maxPartSize = 5 << 30
	maxParts    = 10_000
)

// smallSize is up to which size a blob needs no part buffer.
const smallSize = 256 << 10

// minRate is how many bytes a second the server must take of a request's
// content; a slower one counts as hanging.
const minRate = 256 << 10

// attempts is how often a request is made whose failure may be a passing one.
const attempts = 3

// Options are the optional settings of [New].
type Options struct {
	// PartSize is how many bytes of a large blob go to the server in one request:
	// from 5 MiB to 5 GiB. A blob has at most 10,000 parts. Defaults to
	// DefaultPartSize.
	PartSize int64
	// Memory is how many bytes of content all Puts together hold, of blobs larger
	// than 256 KiB; a Put of a smaller one holds at most that in addition. It must
	// be PartSize at least. A Put that finds it all in use waits as long as a part
	// may take, and fails with [blobstore.ErrUnavailable] then. Defaults to
	// DefaultMemory.
	Memory int64
	// Timeout is how long the server may take for a request, including up to two
	// more attempts, and be silent while a blob is read. A request with content
	// has a second more for every 256 KiB. What takes longer fails with
	// [blobstore.ErrUnavailable]. Defaults to DefaultTimeout.
	Timeout time.Duration
	// Transport makes the HTTP requests. One of your own should not decompress
	// ([http.Transport.DisableCompression]). Defaults to one with HTTP/1.1, the
	// proxy of the environment and up to 64 idle connections.
	Transport http.RoundTripper
}

// A Store is a [blobstore.Store] and a [blobstore.Cleaner]. It needs no closing.
type Store struct {
	core     *minio.Core
	bucket   string
	prefix   string // "" or ending in "/"
	secure   bool
	partSize int64
	timeout  time.Duration
	buffers  *buffers
	small    sync.Pool // of *[smallSize]byte
}

// New returns a Store of the blobs in a bucket, which must exist. It contacts
// nobody; a server that is down or refuses the credentials is found out by
// [Store.Stat] of any key.
func New(bucket Bucket, credentials Credentials, opts *Options) (*Store, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("s3blob: %w", err)
	}
	if err := bucket.complete(); err != nil {
		return nil, fmt.Errorf("s3blob: %w", err)
	}
	if credentials.provider == nil {
		return nil, errors.New("s3blob: no credentials")
	}
	host, secure, err := parseEndpoint(bucket.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("s3blob: %w", err)
	}
	core, err := minio.NewCore(host, &minio.Options{
		Creds: credentials.provider, Secure: secure, Region: bucket.Region, Transport: o.Transport,
		BucketLookup: bucket.Addressing.lookup(), MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("s3blob: %w", err)
	}
	s := &Store{
		core: core, bucket: bucket.Name, secure: secure, partSize: o.PartSize, timeout: o.Timeout,
		buffers: newBuffers(int(o.PartSize), int(o.Memory/o.PartSize)),
		small:   sync.Pool{New: func() any { return new([smallSize]byte) }},
	}
	if bucket.Prefix != "" {
		s.prefix = bucket.Prefix + "/"
	}
	return s, nil
}

// complete sets the defaults and checks the rest.
func (o *Options) complete() error {
	if o.PartSize == 0 {
		o.PartSize = DefaultPartSize
	}
	if o.Memory == 0 {
		o.Memory = max(DefaultMemory, o.PartSize)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	switch {
	case o.PartSize < minPartSize || o.PartSize > maxPartSize:
		return fmt.Errorf("parts of %d bytes; S3 takes %d to %d", o.PartSize, minPartSize, maxPartSize)
	case o.Memory < o.PartSize:
		return fmt.Errorf("%d bytes of memory are not enough for a part of %d", o.Memory, o.PartSize)
	case o.Timeout < 0:
		return fmt.Errorf("a timeout of %s", o.Timeout)
	}
	return nil
}

// newTransport returns a transport for HTTP/1.1: the parts of several Puts
// through one HTTP/2 connection would wait for each other.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		IdleConnTimeout:     time.Minute,
		MaxIdleConns:        64,
		MaxIdleConnsPerHost: 64,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
		DisableCompression:  true, // a blob is its bytes, whatever a proxy thinks of them
	}
}

// limit is how long a request with n bytes of content may take.
func (s *Store) limit(n int64) time.Duration {
	return s.timeout + time.Duration(n*1000/minRate)*time.Millisecond
}

// call makes a request that may take at most limit, and translates its error.
func (s *Store) call(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	return translate(ctx, limited, do(limited))
}

// check returns why nothing can be done with a key.
func check(ctx context.Context, key string) error {
	if err := blobstore.CheckKey(key); err != nil {
		return err
	}
	return ctx.Err()
}
