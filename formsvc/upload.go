package formsvc

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// discardTimeout limits the removal of blobs whose files don't exist. The sweep removes the rest.
const discardTimeout = 10 * time.Second

// Upload adds a file to a response. First the bytes are made durable; then the file and the event "file.uploaded" are
// created in one atomic write, without the event if the response is held. A failed upload leaves no file; its blob is removed at once or by [Files.Sweep].
//
// It fails with a *[ValidationError] for an invalid Module or a file that it doesn't accept, a *[FileSizeError], [ErrDigest], [ErrNotFound] for an
// unknown response, a *[LimitError] beyond the account's limit, [ErrOtherBlobs], and with [ErrNoSpace] or
// [ErrUnavailable] if the blob can't be stored.
func (s Files) Upload(ctx context.Context, key ResponseKey, in FileInput) (_ File, err error) {
	defer wrap(&err, "upload file")
	content, err := s.intake(&in)
	if err != nil {
		return File{}, err
	}
	f, err := once(ctx, s.s, key.AccountID, func() (File, error) { return s.upload(ctx, key, content) })
	if err != nil || s.s.once == nil || !s.s.once.repeated {
		return f, err
	}
	// The content of a repeated upload is received, compared, and stored nowhere.
	if _, err := io.Copy(io.Discard, content); err != nil {
		return File{}, err
	}
	sent := content.file()
	if sent.SHA256 != f.SHA256 || sent.Name != f.Name || sent.ContentType != f.ContentType || sent.Module != f.Module {
		s.s.once.repeated = false
		return File{}, ErrMismatch
	}
	return f, nil
}

func (s Files) upload(ctx context.Context, key ResponseKey, content *intake) (File, error) {
	if content.ended != nil { // a second try has nothing to read
		return File{}, errUnsettled
	}
	if err := s.s.repeated(ctx, key.AccountID); err != nil {
		return File{}, err
	}
	c, err := s.s.store.Campaign(ctx, CampaignKey{AccountID: key.AccountID, ID: key.CampaignID})
	if err != nil {
		return File{}, err
	}
	// Check first, so that a large upload to an unknown response fails early.
	if _, err := s.s.store.Response(ctx, key); err != nil {
		return File{}, err
	}
	if err := s.s.claimed(ctx); err != nil {
		return File{}, err
	}
	limits, err := s.s.limits(ctx, key.AccountID)
	if err != nil {
		return File{}, err
	}
	began := s.s.now()
	id := s.s.NewID(began)
	content.modules = c.Modules
	if _, err := s.s.Blobs.Put(ctx, BlobKey(id), content); err != nil {
		return File{}, blobError(err)
	}
	f := content.file()
	f.ID, f.AccountID, f.CampaignID, f.ResponseID, f.CreatedAt = id, key.AccountID, key.CampaignID, key.ID, began
	err = s.s.store.CreateFile(ctx, f, func(r *Response) (Change, error) {
		extra := eventExtra{member: "file", json: f.AppendJSON(nil)}
		change := Change{Idempotency: record(s.s, key.AccountID, key.ID, &f), Limit: limits.Stored}
		change.unlessHeld(r, s.s.newEvent(ctx, webhook.FileUploaded, &c, r, s.s.now(), extra))
		return change, nil
	})
	if err != nil {
		s.s.discard(ctx, id)
		if errors.Is(err, ErrConflict) { // no other file has the identifier: a sweep barred it
			err = fmt.Errorf("%w: the upload took longer than %v: %w", ErrUnavailable, SweepAge, err)
		}
		return File{}, limited(err, "bytes of files", limits.Stored)
	}
	s.s.raised(key.AccountID)
	return f, nil
}

// discard removes the blob of a file that was not created. It asks the store first, which may have
// created the file although it returned an error.
func (c *core) discard(ctx context.Context, id ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if barred, err := c.store.BarFiles(ctx, []ID{id}); err == nil && len(barred) == 1 {
		c.removeBlob(ctx, id)
	}
}

// An intake reads the content of a new file, and counts, hashes and checks it. It returns io.EOF
// only if all checks pass, so that its reader never stores invalid content.
type intake struct {
	in      *FileInput
	limit   int64
	modules []Module  // of the campaign
	size    int64     // bytes so far
	hash    hash.Hash // SHA-256
	sum     uint32    // CRC-32C of the block that has begun
	blocks  []byte    // those of the blocks before, see File.Blocks
	ended   error     // io.EOF or an error, at the end
}

func (s Files) intake(in *FileInput) (*intake, error) {
	if s.s.Blobs == nil {
		return nil, errors.ErrUnsupported
	}
	return &intake{in: in, limit: s.s.MaxFile, hash: sha256.New()}, in.check()
}

// Read implements io.Reader.
func (t *intake) Read(p []byte) (int, error) {
	if t.ended != nil {
		return 0, t.ended
	}
	n, err := t.in.Content.Read(p)
	t.add(p[:n])
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

func (t *intake) add(p []byte) {
	_, _ = t.hash.Write(p) // never fails
	for len(p) > 0 {
		n := min(len(p), BlockSize-int(t.size%BlockSize))
		t.sum, t.size = crc32.Update(t.sum, castagnoli(), p[:n]), t.size+int64(n)
		if p = p[n:]; t.size%BlockSize == 0 {
			t.endBlock()
		}
	}
}

func (t *intake) endBlock() { t.blocks, t.sum = binary.BigEndian.AppendUint32(t.blocks, t.sum), 0 }

// castagnoli returns the table of CRC-32C; hash/crc32 builds it only once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// end checks what was read.
func (t *intake) end() error {
	if t.size%BlockSize > 0 {
		t.endBlock()
	}
	if t.in.SHA256 != nil && *t.in.SHA256 != t.digest() {
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
	if i := slices.IndexFunc(t.modules, func(m Module) bool { return m.Name == t.in.Module }); i >= 0 && !t.modules[i].Accepts(t.in.Name, t.in.ContentType) {
		return invalid("/file", "file_type", "must be of one of these types: "+strings.Join(t.modules[i].Accept, ", "))
	}
	return io.EOF
}

func (t *intake) digest() [sha256.Size]byte { return [sha256.Size]byte(t.hash.Sum(nil)) }

// file returns the file's metadata, after io.EOF.
func (t *intake) file() File {
	return File{
		Name: cleanFileName(t.in.Name), ContentType: cleanContentType(t.in.ContentType), Module: t.in.Module,
		Size: t.size, SHA256: t.digest(), Blocks: t.blocks,
	}
}
