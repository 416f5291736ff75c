package s3blob

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/formsvc/toolkit/blobstore"
)

// tokenName is the object's metadata that identifies its Put. If a response was lost, the next
// attempt finds the key taken, by itself or by another Put.
const tokenName = "Put"

// Put implements [blobstore.Store]. It asks the server whether the key is free before it reads
// anything. The largest blob has 10,000 parts of 5 MiB.
func (s *Store) Put(ctx context.Context, key string, r io.Reader) (_ int64, err error) {
	defer wrap(&err, "put", key)
	if err := cmp.Or(blobstore.CheckKey(key), ctx.Err()); err != nil {
		return 0, err
	}
	if _, err := s.head(ctx, key); err == nil {
		return 0, fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	p := &put{Store: s, key: key, token: rand.Text()}
	if err := p.run(ctx, r); err != nil {
		return 0, err
	}
	return p.size, nil
}

// A put is one call of Put.
type put struct {
	*Store

	key   string
	token string
	size  int64

	// For a blob in parts.
	upload string
	sent   []minio.CompletePart
}

// run stores the content of r, in one request if it fits into a buffer.
func (p *put) run(ctx context.Context, r io.Reader) error {
	head := p.small.Get().(*[smallSize]byte)
	n, end, err := fill(ctx, r, head[:])
	if err == nil && end {
		err = p.single(ctx, head[:n])
	}
	if err != nil || end {
		p.small.Put(head)
		return err
	}
	buf, err := p.acquire(ctx, p.limit(partSize))
	if err != nil {
		p.small.Put(head)
		return err
	}
	defer p.release(buf)
	copy(buf[:], head[:])
	p.small.Put(head)
	return p.large(ctx, r, buf[:], n)
}

// acquire waits for a part buffer, up to the time limit. The caller that waits longest is served
// first. Unused buffers are left to the garbage collector, so that an idle store holds no memory.
func (s *Store) acquire(ctx context.Context, limit time.Duration) (*[partSize]byte, error) {
	select {
	case s.held <- struct{}{}:
		return s.parts.Get().(*[partSize]byte), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(limit):
		return nil, fmt.Errorf("%w: all %d buffers are in use", blobstore.ErrUnavailable, cap(s.held))
	}
}

func (s *Store) release(buf *[partSize]byte) {
	s.parts.Put(buf)
	<-s.held
}

// fill reads until the buffer is full or r ends. Unlike io.ReadFull, it doesn't treat an
// io.ErrUnexpectedEOF of r as the end, since that is the error of a truncated request body.
func fill(ctx context.Context, r io.Reader, buf []byte) (n int, end bool, err error) {
	for n < len(buf) && err == nil {
		if err := ctx.Err(); err != nil {
			return n, false, err
		}
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	if err == io.EOF {
		return n, true, nil
	}
	return n, false, err
}

// single stores a blob in one request.
func (p *put) single(ctx context.Context, data []byte) error {
	crc32c, sha256Hex := p.digest(data)
	opts := p.options()
	opts.DisableContentSha256 = true // the digest replaces another hash
	opts.SetMatchETagExcept("*")
	if crc32c != "" {
		opts.UserMetadata[minio.ChecksumCRC32C.Key()] = crc32c
	}
	err := p.send(ctx, data, func(ctx context.Context, content io.Reader) error {
		_, err := p.core.PutObject(ctx, p.bucket, p.object(p.key), content, int64(len(data)), "", sha256Hex, opts)
		return err
	})
	p.size = int64(len(data))
	return p.settle(ctx, err)
}

func (p *put) options() minio.PutObjectOptions {
	return minio.PutObjectOptions{UserMetadata: map[string]string{tokenName: p.token}}
}

// large stores a blob whose first n bytes are in buf, which is as long as a part.
func (p *put) large(ctx context.Context, r io.Reader, buf []byte, n int) error {
	m, end, err := fill(ctx, r, buf[n:])
	if err != nil {
		return err
	}
	if end {
		return p.single(ctx, buf[:n+m])
	}
	if err := p.begin(ctx); err != nil {
		return err
	}
	if err = p.sendAll(ctx, r, buf); err == nil {
		err = p.complete(ctx)
	}
	if err != nil {
		p.cleanUp(ctx, func(ctx context.Context) error {
			return p.core.AbortMultipartUpload(ctx, p.bucket, p.object(p.key), p.upload)
		})
	}
	return err
}

// begin starts a multipart upload.
func (p *put) begin(ctx context.Context) error {
	opts := p.options()
	if p.secure {
		opts.UserMetadata["X-Amz-Checksum-Algorithm"] = minio.ChecksumCRC32C.String()
	}
	return noAnswer(p.call(ctx, p.timeout, func(ctx context.Context) (err error) {
		p.upload, err = p.core.NewMultipartUpload(ctx, p.bucket, p.object(p.key), opts)
		return err
	}))
}

// sendAll sends all parts one after another, the first of which is in buf. So a Put never waits for
// the buffers of others.
func (p *put) sendAll(ctx context.Context, r io.Reader, buf []byte) error {
	n, end := len(buf), false
	for number := 1; n > 0; number++ {
		if err := p.part(ctx, number, buf[:n]); err != nil || end {
			return err
		}
		var err error
		if n, end, err = fill(ctx, r, buf); err != nil {
			return err
		}
	}
	return nil
}

// part sends a part.
func (p *put) part(ctx context.Context, number int, data []byte) error {
	if number > maxParts {
		return fmt.Errorf("more than %d parts of %d bytes", maxParts, partSize)
	}
	crc32c, sha256Hex := p.digest(data)
	opts := minio.PutObjectPartOptions{Sha256Hex: sha256Hex, DisableContentSha256: true}
	if crc32c != "" {
		opts.CustomHeader = map[string][]string{minio.ChecksumCRC32C.KeyCapitalized(): {crc32c}}
	}
	var part minio.ObjectPart
	err := p.send(ctx, data, func(ctx context.Context, content io.Reader) (err error) {
		part, err = p.core.PutObjectPart(ctx, p.bucket, p.object(p.key), p.upload, number, content, int64(len(data)), opts)
		return err
	})
	if err != nil {
		return err
	}
	p.sent = append(p.sent, minio.CompletePart{PartNumber: number, ETag: part.ETag, ChecksumCRC32C: crc32c})
	p.size += int64(len(data))
	return nil
}

// complete combines the parts to a blob.
func (p *put) complete(ctx context.Context) error {
	var opts minio.PutObjectOptions
	opts.SetMatchETagExcept("*")
	// Combining the parts takes the server a fraction of the time of sending them.
	err := p.call(ctx, p.limit(p.size/16), func(ctx context.Context) error {
		return repeat(ctx, conflict, func() error { // package minio retries other failures
			_, err := p.core.CompleteMultipartUpload(ctx, p.bucket, p.object(p.key), p.upload, p.sent, opts)
			return err
		})
	})
	return p.settle(ctx, noAnswer(err))
}

// settle interprets the error of the last request by the blob that exists: if the response to an
// earlier attempt was lost, it may be this Put's own. After an upload in parts, settle also compares
// the size. It ignores the end of the context, since it is short and the blob may exist already.
func (p *put) settle(ctx context.Context, err error) error {
	taken := errors.Is(err, fs.ErrExist)
	switch {
	case err == nil && p.upload == "":
		return nil
	case answer(err).StatusCode == http.StatusNotImplemented:
		return fmt.Errorf("%w: the server doesn't support conditional writes (If-None-Match: *); use one that does: %w",
			errors.ErrUnsupported, err)
	case err != nil && !taken && answer(err).Code != minio.NoSuchUpload:
		return err
	}
	info, headErr := p.head(context.WithoutCancel(ctx), p.key)
	token := info.UserMetadata[tokenName]
	switch {
	case errors.Is(headErr, fs.ErrNotExist):
		return err // deleted meanwhile
	case headErr != nil:
		return headErr
	case token == p.token && info.Size == p.size:
		return nil
	case token == p.token:
		err = fmt.Errorf("%w: the server has %d of %d bytes", blobstore.ErrUnavailable, info.Size, p.size)
	case err == nil && token == "":
		// Clean aborted the upload, and parts that were being sent recreated it without its
		// metadata.
		err = fmt.Errorf("%w: the upload was aborted", blobstore.ErrUnavailable)
	case err != nil && !taken:
		return fmt.Errorf("%w: %v", fs.ErrExist, err) //nolint:errorlint // it says that trying again may help
	default:
		return err // another Put's blob
	}
	p.cleanUp(ctx, func(ctx context.Context) error {
		return p.core.RemoveObject(ctx, p.bucket, p.object(p.key), minio.RemoveObjectOptions{})
	})
	return err
}

// cleanUp makes a request whose failure doesn't matter, even after the caller's context has ended.
// The sweep removes what it couldn't.
func (p *put) cleanUp(ctx context.Context, do func(context.Context) error) {
	_ = p.call(context.WithoutCancel(ctx), min(p.timeout, cleanUpTimeout), do)
}

const cleanUpTimeout = 5 * time.Second
