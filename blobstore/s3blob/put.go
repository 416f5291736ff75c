package s3blob

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/formsvc/toolkit/blobstore"
)

// tokenName is the object's metadata that identifies its Put. If a response was lost, the next
// attempt finds the key taken, by itself or by another Put.
const tokenName = "Put"

// Put implements [blobstore.Store]. It asks the server whether the key is free before it reads
// anything. The largest blob has 10,000 parts ([Options.PartSize]).
func (s *Store) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	n, err := s.put(ctx, key, r)
	if err != nil {
		return 0, fmt.Errorf("s3blob: put %s: %w", key, err)
	}
	return n, nil
}

func (s *Store) put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := check(ctx, key); err != nil {
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
	mu     sync.Mutex
	parts  []minio.CompletePart // in the order of arrival, until all have arrived
}

// run stores the content of r, in one request if it fits into a buffer.
func (p *put) run(ctx context.Context, r io.Reader) error {
	head := p.small.Get().(*[smallSize]byte)
	defer func() {
		if head != nil {
			p.small.Put(head)
		}
	}()
	n, end, err := fill(ctx, r, head[:])
	if err != nil {
		return err
	}
	if end {
		return p.single(ctx, head[:n])
	}
	buf, err := p.buffers.get(ctx, p.limit(p.partSize))
	if err != nil {
		return err
	}
	copy(*buf, head[:])
	p.small.Put(head)
	head = nil
	return p.large(ctx, r, buf, n)
}

// fill reads until the buffer is full or r ends. Unlike io.ReadFull, it doesn't treat an
// io.ErrUnexpectedEOF of r as the end, since that is the error of a truncated request body.
func fill(ctx context.Context, r io.Reader, buf []byte) (n int, end bool, err error) {
	for empty := 0; n < len(buf); {
		if err := ctx.Err(); err != nil {
			return n, false, err
		}
		m, err := r.Read(buf[n:])
		n += m
		switch {
		case err == io.EOF:
			return n, true, nil
		case err != nil:
			return n, false, err
		case m > 0:
			empty = 0
		default:
			if empty++; empty == maxEmptyReads {
				return n, false, io.ErrNoProgress
			}
		}
	}
	return n, false, nil
}

const maxEmptyReads = 100 // as in package bufio

// single stores a blob in one request.
func (p *put) single(ctx context.Context, data []byte) error {
	d := p.digest(data)
	opts := p.options()
	opts.DisableContentSha256 = true // the digest replaces another hash
	opts.SetMatchETagExcept("*")
	if d.crc32c != "" {
		opts.UserMetadata[minio.ChecksumCRC32C.Key()] = d.crc32c
	}
	err := p.send(ctx, data, func(ctx context.Context, content io.Reader) error {
		_, err := p.core.PutObject(ctx, p.bucket, p.object(p.key), content, int64(len(data)), "", d.sha256Hex, opts)
		return err
	})
	p.size = int64(len(data))
	return p.settle(ctx, err)
}

func (p *put) options() minio.PutObjectOptions {
	return minio.PutObjectOptions{UserMetadata: map[string]string{tokenName: p.token}}
}

// large stores a blob whose first n bytes are in buf, and returns buf.
func (p *put) large(ctx context.Context, r io.Reader, buf *[]byte, n int) error {
	m, end, err := fill(ctx, r, (*buf)[n:])
	n += m
	if err == nil && end {
		err = p.single(ctx, (*buf)[:n])
	}
	if err == nil && !end {
		err = p.begin(ctx)
	}
	if err != nil || end {
		p.buffers.put(buf)
		return err
	}
	err = p.sendAll(ctx, r, buf, n)
	if err == nil {
		err = p.complete(ctx)
	}
	if err != nil {
		p.abort(ctx)
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

// partsUnderWay is how many parts of one Put are sent at once while the next one is filled, if
// there are buffers. With one at a time, a server would use only one processor.
const partsUnderWay = 2

// sendAll sends all parts; the first one is in buf[:n]. It returns buf at the end. A Put keeps one
// buffer to its end, so that it never waits for others; it takes more only while parts are being
// sent, and only if they are free.
func (p *put) sendAll(ctx context.Context, r io.Reader, buf *[]byte, n int) error {
	going, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s := sender{put: p, buf: buf, fail: fail, slots: make(chan struct{}, partsUnderWay)}
	if err := s.run(ctx, going, r, n); err != nil {
		fail(err)
	}
	// If a part or the reader fails, other parts are not canceled: the server may be processing
	// them, and finish them after the upload was aborted.
	s.group.Wait()
	p.buffers.put(s.buf)
	if err := ctx.Err(); err != nil {
		return err
	}
	slices.SortFunc(p.parts, func(a, b minio.CompletePart) int { return cmp.Compare(a.PartNumber, b.PartNumber) })
	return context.Cause(going)
}

// A sender sends the parts of a Put.
type sender struct {
	*put

	buf   *[]byte                 // the buffer that is kept
	fail  context.CancelCauseFunc // keeps the first error; reading stops then
	slots chan struct{}           // has an element for every part that is being sent
	group sync.WaitGroup
}

// run fills and sends part after part until going ends, the first one from buf[:n].
func (s *sender) run(ctx, going context.Context, r io.Reader, n int) error {
	end := false
	for number := 1; n > 0; number++ {
		if number > maxParts {
			return fmt.Errorf("more than %d parts of %d bytes", maxParts, s.partSize)
		}
		if end || !s.sendAside(ctx, number, n) {
			if err := s.part(ctx, number, (*s.buf)[:n]); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
		var err error
		if n, end, err = fill(going, r, *s.buf); err != nil {
			return err
		}
	}
	return nil
}

// sendAside sends the part in the buffer in the background and replaces the buffer. If no other
// buffer is free, it does nothing and returns false.
func (s *sender) sendAside(ctx context.Context, number, n int) bool {
	select {
	case s.slots <- struct{}{}:
	default:
		return false
	}
	next := s.buffers.tryGet()
	if next == nil {
		<-s.slots
		return false
	}
	full := s.buf
	s.buf = next
	s.group.Go(func() {
		if err := s.part(ctx, number, (*full)[:n]); err != nil {
			s.fail(err)
		}
		s.buffers.put(full)
		<-s.slots
	})
	return true
}

// part sends a part.
func (p *put) part(ctx context.Context, number int, data []byte) error {
	d := p.digest(data)
	opts := minio.PutObjectPartOptions{Sha256Hex: d.sha256Hex, DisableContentSha256: true}
	if d.crc32c != "" {
		opts.CustomHeader = map[string][]string{minio.ChecksumCRC32C.KeyCapitalized(): {d.crc32c}}
	}
	var part minio.ObjectPart
	err := p.send(ctx, data, func(ctx context.Context, content io.Reader) (err error) {
		part, err = p.core.PutObjectPart(ctx, p.bucket, p.object(p.key), p.upload, number, content, int64(len(data)), opts)
		return err
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts = append(p.parts, minio.CompletePart{PartNumber: number, ETag: part.ETag, ChecksumCRC32C: d.crc32c})
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
			_, err := p.core.CompleteMultipartUpload(ctx, p.bucket, p.object(p.key), p.upload, p.parts, opts)
			return err
		})
	})
	if err := p.settle(ctx, noAnswer(err)); err != nil {
		return err
	}
	return p.confirm(ctx)
}

// confirm compares the size that was read with the server's. It ignores the end of the context,
// since it is short and the blob exists already.
func (p *put) confirm(ctx context.Context) error {
	info, err := p.head(context.WithoutCancel(ctx), p.key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // deleted meanwhile
	case err != nil:
		return err
	case info.UserMetadata[tokenName] == "":
		// Clean aborted the upload, and parts that were being sent recreated it without its
		// metadata.
		err = fmt.Errorf("%w: the upload was aborted", blobstore.ErrUnavailable)
	case !p.owns(&info):
		return nil // deleted, and replaced by another blob
	case info.Size != p.size:
		err = fmt.Errorf("%w: the server has %d of %d bytes", blobstore.ErrUnavailable, info.Size, p.size)
	default:
		return nil
	}
	p.cleanUp(ctx, func(ctx context.Context) error {
		return p.core.RemoveObject(ctx, p.bucket, p.object(p.key), minio.RemoveObjectOptions{})
	})
	return err
}

// owns reports whether this Put created an object.
func (p *put) owns(info *minio.ObjectInfo) bool { return info.UserMetadata[tokenName] == p.token }

// settle interprets the error of the last request. If the response to an earlier attempt was lost,
// the existing blob may be this Put's own.
func (p *put) settle(ctx context.Context, err error) error {
	taken := errors.Is(err, fs.ErrExist)
	if !taken && code(err) != minio.NoSuchUpload {
		return err
	}
	info, headErr := p.head(ctx, p.key)
	switch {
	case headErr == nil && p.owns(&info):
		return nil
	case headErr == nil && !taken:
		return fmt.Errorf("%w: %v", fs.ErrExist, err) //nolint:errorlint // it says that trying again may help
	case headErr == nil, errors.Is(headErr, fs.ErrNotExist):
		return err // even if the conflicting blob is gone
	}
	return headErr
}

// abort removes the parts of a failed upload.
func (p *put) abort(ctx context.Context) {
	p.cleanUp(ctx, func(ctx context.Context) error {
		return p.core.AbortMultipartUpload(ctx, p.bucket, p.object(p.key), p.upload)
	})
}

// cleanUp makes a request whose failure doesn't matter, even after the caller's context has ended.
// The sweep removes what it couldn't.
func (p *put) cleanUp(ctx context.Context, do func(context.Context) error) {
	_ = p.call(context.WithoutCancel(ctx), min(p.timeout, cleanUpTimeout), do)
}

const cleanUpTimeout = 5 * time.Second
