package formsvc

import (
	"crypto/sha256"
	"io"
	"sync"
)

// An intake reads the content of a new file, and counts, hashes and checks it. It returns io.EOF
// only if all checks pass, so that its reader never stores invalid content. It must be closed.
type intake struct {
	in     *FileInput
	limit  int64
	hasher *blockHasher
	ended  error // io.EOF or an error, at the end

	// Facts about the content, complete at io.EOF.
	size   int64
	digest [sha256.Size]byte
	blocks []byte
}

func newIntake(in *FileInput, limit int64, pool *sync.Pool) *intake {
	return &intake{in: in, limit: limit, hasher: newBlockHasher(pool)}
}

// Read implements io.Reader.
func (t *intake) Read(p []byte) (int, error) {
	if t.ended != nil {
		return 0, t.ended
	}
	n, err := t.in.Content.Read(p)
	t.size += int64(n)
	t.hasher.write(p[:n])
	switch {
	case t.size > t.limit:
		t.ended = &FileSizeError{Limit: t.limit}
	case err == nil:
		return n, nil
	case err == io.EOF: // a wrapped io.EOF means that the content was truncated
		t.ended = t.end()
	default:
		t.ended = err
	}
	return n, t.ended
}

// end checks what was read.
func (t *intake) end() error {
	t.digest, t.blocks = t.hasher.finish()
	if t.in.SHA256 != nil && *t.in.SHA256 != t.digest {
		return ErrDigest
	}
	if t.in.Complete != nil {
		if err := t.in.Complete(t.in); err != nil {
			return err
		}
		if err := t.in.check(); err != nil {
			return err
		}
	}
	return io.EOF
}

// file returns the file's metadata, after io.EOF.
func (t *intake) file() File {
	return File{
		Name: CleanFileName(t.in.Name), ContentType: cleanContentType(t.in.ContentType), Module: t.in.Module,
		Size: t.size, SHA256: t.digest, Blocks: t.blocks,
	}
}

// close ends the reading at any point.
func (t *intake) close() { t.hasher.close() }
