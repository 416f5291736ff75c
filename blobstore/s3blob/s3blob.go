// Package s3blob keeps blobs in a bucket of Amazon S3 or of an S3-compatible server.
//
// The blob k is the object PREFIX/k. The server verifies uploads by a SHA-256 (http) or a CRC-32C
// (https) that the client computes. Large blobs are uploaded in parts; memory is limited, however
// many Puts are running ([Options.Memory]).
//
// A blob is created exclusively with the condition "If-None-Match: *", which AWS and most servers
// support, also for the last request of a large blob. With a server that refuses it, Put fails with
// [errors.ErrUnsupported]. With one that ignores it, two concurrent Puts under one key may both return
// nil. The server must keep the metadata of objects, by which a
// Put recognizes its own.
//
// If the last response was lost, Put fails with [blobstore.ErrUnavailable]; if its context ended
// meanwhile, it fails with the context's error. In both cases the blob may exist. On AWS, the
// modification time of a large blob is the beginning of its Put. An interrupted Put leaves an
// incomplete upload, which isn't a blob and takes space until [Store.Clean] removes it. A bucket
// rule that aborts incomplete uploads after some days does that, too.
//
// The credentials must allow to get, put and delete objects, to list the bucket (otherwise AWS
// replies with 403 for missing objects), and to list and abort its multipart uploads.
package s3blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// Defaults of [Options].
const (
	DefaultMemory  = 64 << 20
	DefaultTimeout = 10 * time.Second
)

// Limits of S3 (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
const (
	partSize = 5 << 20 // the smallest, except for the last part
	maxParts = 10_000
)

// smallSize is the largest size of a blob that needs no part buffer.
const smallSize = 256 << 10

// minRate is how many bytes a second the server must accept; a slower one counts as hanging.
const minRate = 256 << 10

// attempts is how often a request is made if its failures may be temporary.
const attempts = 3

// Options are the optional settings of [New].
type Options struct {
	// Memory limits the content that all Puts of blobs larger than 256 KiB hold together, in bytes;
	// each Put of a smaller blob holds up to 256 KiB in addition. It must be at least 5 MiB. If
	// all of it is in use, a Put waits as long as a part may take, and then fails with
	// [blobstore.ErrUnavailable]. Defaults to DefaultMemory.
	Memory int64
	// Timeout limits a request, including up to two retries, and the server's silence while a blob
	// is read. A request with content has an additional second for every 256 KiB. Beyond that,
	// methods fail with [blobstore.ErrUnavailable]. Defaults to DefaultTimeout.
	Timeout time.Duration
	// Transport makes the HTTP requests. It should not decompress
	// ([http.Transport.DisableCompression]). Defaults to one with HTTP/1.1, the environment's proxy
	// and up to 64 idle connections.
	Transport http.RoundTripper
}

// A Store is a [blobstore.Store] and a [blobstore.Cleaner]. It needn't be closed.
type Store struct {
	core    *minio.Core
	bucket  string
	prefix  string // "" or ending in "/"
	secure  bool
	timeout time.Duration
	small   sync.Pool     // of *[smallSize]byte
	parts   sync.Pool     // of *[partSize]byte
	held    chan struct{} // has an element for every part buffer in use
}

// New returns a Store for a bucket, which must exist. It makes no request; to check the server and
// the credentials, call [Store.Stat] with any key.
func New(bucket Bucket, credentials Credentials, opts *Options) (_ *Store, err error) {
	defer wrap(&err, "bucket", bucket.Name)
	o := *cmp.Or(opts, &Options{})
	if err := o.complete(); err != nil {
		return nil, err
	}
	host, secure, err := bucket.complete()
	if err != nil {
		return nil, err
	}
	if credentials.provider == nil {
		return nil, errors.New("no credentials")
	}
	core, err := minio.NewCore(host, &minio.Options{
		Creds: credentials.provider, Secure: secure, Region: bucket.Region, Transport: o.Transport,
		BucketLookup: bucket.Addressing.lookup(), MaxRetries: attempts,
	})
	if err != nil {
		return nil, err
	}
	s := &Store{
		core: core, bucket: bucket.Name, secure: secure, timeout: o.Timeout,
		small: sync.Pool{New: func() any { return new([smallSize]byte) }},
		parts: sync.Pool{New: func() any { return new([partSize]byte) }},
		held:  make(chan struct{}, o.Memory/partSize),
	}
	if bucket.Prefix != "" {
		s.prefix = bucket.Prefix + "/"
	}
	return s, nil
}

// complete sets defaults and checks the other fields.
func (o *Options) complete() error {
	o.Memory, o.Timeout = cmp.Or(o.Memory, DefaultMemory), cmp.Or(o.Timeout, DefaultTimeout)
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	switch {
	case o.Memory < partSize:
		return fmt.Errorf("%d bytes of memory are not enough for a part of %d", o.Memory, partSize)
	case o.Timeout < 0:
		return fmt.Errorf("a timeout of %s", o.Timeout)
	}
	return nil
}

// newTransport returns a transport for HTTP/1.1, since the parts of several Puts in one HTTP/2
// connection would wait for each other.
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
		DisableCompression:  true, // a blob's bytes must not be decompressed
	}
}

// limit returns how long a request with n bytes of content may take.
func (s *Store) limit(n int64) time.Duration {
	return s.timeout + time.Duration(n*1000/minRate)*time.Millisecond
}

// call makes a request with a time limit, and translates its error.
func (s *Store) call(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	return translate(ctx, limited, do(limited))
}
