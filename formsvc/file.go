package formsvc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/webhook"
)

// A File is the metadata of a file that was uploaded to a response. Its bytes are in a blob under
// [BlobKey]. It never changes.
type File struct {
	ID          ID
	AccountID   ID
	CampaignID  ID
	ResponseID  ID
	Name        string // as [CleanFileName] returns it
	ContentType string // declared by the uploader, in the form of mime.FormatMediaType
	Module      string // "" for none
	Size        int64  // bytes
	SHA256      [sha256.Size]byte
	// Blocks holds the CRC-32C of every [BlockSize] bytes of the content, four bytes each, most
	// significant first. With it any part of the content can be verified when it is read. Lists
	// leave it out.
	Blocks    []byte
	CreatedAt time.Time
}

// FileKey names one file of one account.
type FileKey struct{ AccountID, ID ID }

// FileQuery chooses files of one response.
type FileQuery struct {
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Page       PageQuery
	// AllAccounts selects the files of all accounts; the identifiers are ignored.
	AllAccounts bool
}

// FileInput is what a new file needs.
type FileInput struct {
	Name        string    // any text; see [CleanFileName]
	ContentType string    // a media type; "" or an invalid one means application/octet-stream
	Module      string    // the module that the file belongs to, at most 200 characters; "" for none
	Content     io.Reader // read until io.EOF; its errors are returned
	// SHA256 is the hash that the content must have. Defaults to any.
	SHA256 *[sha256.Size]byte
	// Complete is called at the end of Content, before the file exists. It may set Name,
	// ContentType and Module, if they are known only then. Its error is returned. Defaults to
	// nothing.
	Complete func(in *FileInput) error
}

// BlobKey returns the key of the blob with a file's bytes. Its first segment is random, which
// spreads blobs over directories.
func BlobKey(id ID) string { return string(id[len(id)-2:]) + "/" + string(id) }

// blobID returns the ID of the file whose bytes are under a key. ok is false for keys that aren't
// ours.
func blobID(key string) (id ID, ok bool) {
	if len(key) < 3 {
		return "", false
	}
	id = ID(key[3:])
	return id, id.Valid() && BlobKey(id) == key
}

// Files uploads, reads and verifies files. It is safe for concurrent use. Every method fails with
// [errors.ErrUnsupported] if the Service has no [Options.Blobs].
type Files struct{ s *core }

// Limit returns the largest size of a file in bytes ([Options.MaxFile]).
func (s Files) Limit() int64 { return s.s.maxFile }

// discardTimeout limits the removal of a blob whose file was not created.
const discardTimeout = 10 * time.Second

// Upload adds a file to a response. First the bytes are made durable; then the file and the event
// "file.uploaded" are created in one atomic write. A failed upload leaves no file; its blob is
// removed at once or by [Files.Sweep].
//
// It fails with a *[ValidationError] for an invalid Module, with a *[FileSizeError] if the content
// is larger than [Options.MaxFile], and with [ErrDigest] if it has another hash. It fails with
// [ErrNotFound] for an unknown response, with [ErrNoSpace] or [ErrUnavailable] if the blob can't be
// stored, and with [ErrOtherBlobs].
func (s Files) Upload(ctx context.Context, key ResponseKey, in FileInput) (File, error) {
	f, err := s.upload(ctx, key, &in)
	if err != nil {
		return File{}, fmt.Errorf("formsvc: upload file: %w", err)
	}
	s.s.raised(key.AccountID)
	return f, nil
}

func (s Files) upload(ctx context.Context, key ResponseKey, in *FileInput) (File, error) {
	if s.s.blobs == nil {
		return File{}, errors.ErrUnsupported
	}
	if err := in.check(); err != nil {
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
	began := s.s.now()
	id := s.s.newID(began)
	content := newIntake(in, s.s.maxFile, s.s.pieces)
	defer content.close()
	if _, err := s.s.blobs.Put(ctx, BlobKey(id), content); err != nil {
		return File{}, blobError(err)
	}
	f := content.file()
	f.ID, f.AccountID, f.CampaignID, f.ResponseID, f.CreatedAt = id, key.AccountID, key.CampaignID, key.ID, began
	trace := s.s.traceParent(ctx)
	err = s.s.store.CreateFile(ctx, f, func(r *Response) (Change, error) {
		extra := eventExtra{member: "file", json: f.AppendJSON(nil), trace: trace}
		return Change{
			Events:      []Event{s.s.newEvent(webhook.FileUploaded, &c, r, s.s.now(), extra)},
			Idempotency: s.s.record(&f),
		}, nil
	})
	if err != nil {
		s.s.discard(ctx, id)
		if errors.Is(err, ErrConflict) { // no other file has the identifier: a sweep barred it
			err = fmt.Errorf("%w: the upload took longer than %v: %w", ErrUnavailable, SweepAge, err)
		}
		return File{}, err
	}
	return f, nil
}

// Examine reads and checks the content of a new file as [Files.Upload] does, but stores nothing. It
// sets only Name, ContentType, Module, Size, SHA256 and Blocks of the result. Use it to find out
// whether an upload repeats an earlier one.
func (s Files) Examine(ctx context.Context, in FileInput) (File, error) {
	f, err := s.examine(ctx, &in)
	if err != nil {
		return File{}, fmt.Errorf("formsvc: examine file: %w", err)
	}
	return f, nil
}

func (s Files) examine(ctx context.Context, in *FileInput) (File, error) {
	if s.s.blobs == nil {
		return File{}, errors.ErrUnsupported
	}
	if err := in.check(); err != nil {
		return File{}, err
	}
	content := newIntake(in, s.s.maxFile, s.s.pieces)
	defer content.close()
	if _, err := io.Copy(io.Discard, content); err != nil {
		return File{}, err
	}
	return content.file(), ctx.Err()
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

// removeBlob removes the blob of a file that doesn't exist, and reports whether it succeeded. If
// not, the sweep removes the blob later.
func (c *core) removeBlob(ctx context.Context, id ID) bool {
	err := c.claimed(ctx)
	if err == nil {
		err = c.blobs.Delete(ctx, BlobKey(id))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.logger.LogAttrs(ctx, slog.LevelWarn, "a blob without a file is left to the sweep",
			slog.String("file", string(id)), slog.Any("error", err))
		return false
	}
	return true
}

// Get returns the metadata of a file, or [ErrNotFound].
func (s Files) Get(ctx context.Context, key FileKey) (File, error) {
	if s.s.blobs == nil {
		return File{}, fmt.Errorf("formsvc: file: %w", errors.ErrUnsupported)
	}
	f, err := s.s.store.File(ctx, key)
	if err != nil {
		return File{}, fmt.Errorf("formsvc: file: %w", err)
	}
	return f, nil
}

// List returns a page of the files of a response, without [File.Blocks], or
// [ErrNotFound].
func (s Files) List(ctx context.Context, q FileQuery) (Page[File], error) {
	if s.s.blobs == nil {
		return Page[File]{}, fmt.Errorf("formsvc: files: %w", errors.ErrUnsupported)
	}
	q.Page = q.Page.Clamped()
	page, err := s.s.store.Files(ctx, q)
	if err != nil {
		return Page[File]{}, fmt.Errorf("formsvc: files: %w", err)
	}
	return page, nil
}

// blobError wraps an error of a blob store in the matching error of this package.
func blobError(err error) error {
	switch {
	case errors.Is(err, blobstore.ErrNoSpace):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	case errors.Is(err, blobstore.ErrUnavailable):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// AppendJSON appends the file as the JSON object that clients get and webhooks
// carry.
func (f *File) AppendJSON(b []byte) []byte {
	b = append(b, `{"uuid":"`...)
	b = append(b, f.ID...)
	b = append(b, `","name":`...)
	b = appendString(b, f.Name)
	b = append(b, `,"contentType":`...)
	b = appendString(b, f.ContentType)
	b = fmt.Appendf(b, `,"size":%d,"sha256":"%x","module":`, f.Size, f.SHA256)
	b = appendOptional(b, f.Module)
	b = append(b, `,"responseUuid":"`...)
	b = append(b, f.ResponseID...)
	b = append(b, `","campaignUuid":"`...)
	b = append(b, f.CampaignID...)
	b = append(b, `","createdAt":`...)
	return append(AppendTime(b, f.CreatedAt), '}')
}
