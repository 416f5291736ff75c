package intake

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"mime/multipart"
	"os"

	"github.com/formsvc/toolkit/formsvc"
)

const (
	filesAtMost = 50 // of one form
	fullFiles   = 2  // of the largest size, in one form
)

// A file is a file of a form.
type file struct {
	module, name, contentType string
	offset, size              int64 // in the spool
	sum                       [sha256.Size]byte
	tooLarge                  bool // then the rest isn't kept
}

// A spool keeps the bytes of a form's files in one temporary file until all fields are checked.
type spool struct {
	file *os.File // nil until there is a file
	size int64
}

// close removes the temporary file.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name()) // where open files can't be removed
	}
}

// add copies a file of at most limit bytes.
func (s *spool) add(f *file, content io.Reader, limit int64) (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "formsvc-form-*"); err != nil {
			return err
		}
		_ = os.Remove(s.file.Name()) // so that a crash leaves nothing
	}
	hash := sha256.New()
	f.offset = s.size
	f.size, err = io.Copy(io.MultiWriter(s.file, hash), io.LimitReader(content, limit+1))
	if _, disk := errors.AsType[*fs.PathError](err); disk {
		return err
	}
	s.size += f.size
	f.sum, f.tooLarge = [sha256.Size]byte(hash.Sum(nil)), f.size > limit
	return bodyError(err)
}

// readParts reads a form with files of at most limit bytes each.
func (s *sent) readParts(body io.Reader, boundary string, limit int64) error {
	if boundary == "" {
		return errMedia
	}
	text := int64(maxText)
	for parts := multipart.NewReader(body, boundary); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return bodyError(err)
		}
		if part.FileName() != "" {
			if len(s.files) == filesAtMost {
				return errTooMuch
			}
			f := file{module: s.fieldName(part.FormName()), name: part.FileName(), contentType: part.Header.Get("Content-Type")}
			if err := s.spooled.add(&f, part, limit); err != nil {
				return err
			}
			s.files = append(s.files, f)
			continue
		}
		b, err := io.ReadAll(io.LimitReader(part, text+1))
		if err != nil {
			return bodyError(err)
		}
		if text -= int64(len(b)); text < 0 {
			return errTooMuch
		}
		if err := s.add(part.FormName(), string(b)); err != nil {
			return err
		}
	}
}

// input returns the file as an input for the service.
func (s *spool) input(f *file) formsvc.FileInput {
	return formsvc.FileInput{
		Name: f.name, ContentType: f.contentType, Module: f.module, Content: io.NewSectionReader(s.file, f.offset, f.size), SHA256: &f.sum,
	}
}
