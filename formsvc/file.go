package formsvc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/formsvc/toolkit/blobstore"
)

// A File is the metadata of a file that was uploaded to a response. Its bytes are in a blob under
// [BlobKey]. It never changes.
type File struct {
	ID         ID
	AccountID  ID
	CampaignID ID
	ResponseID ID
	// Name is what follows the last slash or backslash of the uploader's name, without control characters, characters
	// that change the direction of writing, surrounding spaces and trailing dots. It has up to 255 bytes of UTF-8 and
	// keeps the extension; "file" if nothing remains. It is only displayed: blobs are not stored under it.
	Name        string
	ContentType string // declared by the uploader, in the form of mime.FormatMediaType
	Module      string // "" for none
	Size        int64  // bytes
	SHA256      [sha256.Size]byte
	// Blocks holds the CRC-32C of every [BlockSize] bytes of the content, four bytes each, most significant first. With
	// it any part of the content can be verified when it is read. Lists leave it out.
	Blocks    []byte
	CreatedAt time.Time
}

// FileKey names one file of one account.
type FileKey struct{ AccountID, ID ID }

// FileInput is what a new file needs.
type FileInput struct {
	Name        string    // any text; see [File].Name
	ContentType string    // a media type; "" or an invalid one means application/octet-stream
	Module      string    // the module that the file belongs to, at most 200 characters; "" for none
	Content     io.Reader // read until io.EOF; its errors are returned
	// SHA256 is the hash that the content must have. Defaults to any.
	SHA256 *[sha256.Size]byte
	// Complete is called at the end of Content, before the file exists. It may set Name, ContentType and Module, if
	// they are known only then. Its error is returned. Defaults to nothing.
	Complete func(in *FileInput) error
}

// BlobKey returns the key of the blob with a file's bytes. Its first segment is random, which
// spreads blobs over directories.
func BlobKey(id ID) string { return string(id[len(id)-2:]) + "/" + string(id) }

// blobID returns the ID of the file whose bytes are under a key. ok is false for keys that aren't ours.
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
func (s Files) Limit() int64 { return s.s.MaxFile }

// removeBlob removes the blob of a file that doesn't exist, and reports whether it succeeded. If
// not, the sweep removes the blob later.
func (c *core) removeBlob(ctx context.Context, id ID) bool {
	err := c.claimed(ctx)
	if err == nil {
		err = c.Blobs.Delete(ctx, BlobKey(id))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Logger.LogAttrs(ctx, slog.LevelWarn, "orphaned blob not removed; the next sweep retries",
			slog.String("file", string(id)), slog.Any("error", err))
		return false
	}
	return true
}

// Get returns the metadata of a file, or [ErrNotFound].
func (s Files) Get(ctx context.Context, key FileKey) (_ File, err error) {
	defer wrap(&err, "file")
	if s.s.Blobs == nil {
		return File{}, errors.ErrUnsupported
	}
	return s.s.store.File(ctx, key)
}

// List returns a page of the files of a response, without [File.Blocks], or [ErrNotFound].
func (s Files) List(ctx context.Context, key ResponseKey, q PageQuery) (page Page[File], err error) {
	defer wrap(&err, "files")
	if s.s.Blobs == nil {
		return Page[File]{}, errors.ErrUnsupported
	}
	if q, err = q.checked(); err != nil {
		return page, err
	}
	return s.s.store.Files(ctx, key, q)
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

// AppendJSON appends the file as the JSON object that clients get and webhooks carry.
func (f *File) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"uuid":`, string(f.ID))
	b = appendText(b, `,"name":`, f.Name)
	b = appendText(b, `,"contentType":`, f.ContentType)
	b = fmt.Appendf(b, `,"size":%d,"sha256":"%x"`, f.Size, f.SHA256)
	b = appendOptional(b, `,"module":`, f.Module)
	b = appendText(b, `,"responseUuid":`, string(f.ResponseID))
	b = appendText(b, `,"campaignUuid":`, string(f.CampaignID))
	return append(appendTime(b, `,"createdAt":`, f.CreatedAt), '}')
}

// Limits of a file's metadata.
const (
	maxFileName    = 255 // bytes, as in most file systems
	maxContentType = 255
)

const (
	defaultFileName    = "file"
	defaultContentType = "application/octet-stream"
)

// check refuses metadata that can't be cleaned up.
func (in *FileInput) check() error {
	var v ValidationError
	v.checkLine("/module", in.Module, maxModuleName)
	return v.err()
}

// cleanFileName returns [File.Name] for an uploader's name.
func cleanFileName(name string) string {
	if decoded, err := new(mime.WordDecoder).DecodeHeader(name); err == nil { // some mail programs send names as RFC 2047 has them
		name = decoded
	}
	name = strings.ToValidUTF8(name, "\uFFFD")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, name)
	name = trimFileName(name)
	if len(name) > maxFileName {
		ext := path.Ext(name)
		if len(ext) > maxFileName/4 {
			ext = ""
		}
		end := maxFileName - len(ext)
		for !utf8.RuneStart(name[end]) {
			end--
		}
		name = trimFileName(name[:end]) + ext
	}
	if name == "" {
		return defaultFileName
	}
	return name
}

// trimFileName removes characters that some systems drop from the ends of a name.
func trimFileName(name string) string {
	return strings.TrimLeftFunc(strings.TrimRightFunc(name, func(r rune) bool {
		return r == '.' || unicode.IsSpace(r)
	}), unicode.IsSpace)
}

// cleanContentType returns a declared media type in canonical form.
func cleanContentType(s string) string {
	mediaType, parameters, err := mime.ParseMediaType(s)
	if err != nil || !strings.Contains(mediaType, "/") || len(s) > maxContentType {
		return defaultContentType
	}
	formatted := mime.FormatMediaType(mediaType, parameters)
	if formatted == "" || len(formatted) > maxContentType || CheckText(formatted) != nil {
		return defaultContentType
	}
	return formatted
}
