package intake

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"mime/multipart"
	"os"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/limits"
)

const (
	filesAtMost = 50       // of one form
	fullFiles   = 2        // of the largest size, in one form
	partHeader  = 8 << 10  // bytes of a part's header
	partBuffer  = 8 << 10  // what multipart reads ahead, with a margin
	strayBytes  = 64 << 10 // of files that no question takes: so many are skipped to reach the fields that follow
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
	file    *os.File // nil until there is a file
	size    int64
	pool    *limits.Pool // of bytes, from which the address gets some
	address string
	taken   int64
}

// Ready fails if no temporary file can be created. Then forms with files get 503.
func (h *Handler) Ready() error {
	var s spool
	defer s.close()
	if err := s.open(); err != nil {
		return fmt.Errorf("intake: files of forms need a temporary directory, such as in TMPDIR: %w", err)
	}
	return nil
}

func (s *spool) open() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "formsvc-form-*"); err != nil {
			return err
		}
		_ = os.Remove(s.file.Name()) // so that a crash leaves nothing
	}
	return nil
}

// close removes the temporary file.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name()) // where open files can't be removed
	}
	if s.pool != nil {
		s.pool.Give(s.address, s.taken)
	}
}

// Write implements io.Writer, within the budget of bytes.
func (s *spool) Write(p []byte) (int, error) {
	if !s.pool.Take(s.address, int64(len(p))) {
		return 0, errSpool
	}
	s.taken += int64(len(p))
	return s.file.Write(p)
}

// add copies a file of at most limit bytes. It fails with errSpool if the file can't be kept.
func (s *spool) add(f *file, content io.Reader, limit int64) error {
	if err := s.open(); err != nil {
		return errors.Join(errSpool, err)
	}
	hash := sha256.New()
	f.offset = s.size
	n, err := io.Copy(io.MultiWriter(s, hash), io.LimitReader(content, limit+1))
	if _, disk := errors.AsType[*fs.PathError](err); disk {
		return errors.Join(errSpool, err)
	}
	f.size = n
	s.size += n
	f.sum, f.tooLarge = [sha256.Size]byte(hash.Sum(nil)), n > limit
	return err
}

// A headReader reads a multipart form, of whose headers at most so many bytes are left.
type headReader struct {
	io.Reader

	left int64
}

// Read implements io.Reader.
func (h *headReader) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, &limitError{"largeHeader", byteCount(partHeader)}
	}
	n, err := h.Reader.Read(p[:min(int64(len(p)), h.left)])
	h.left -= int64(n)
	return n, err
}

// readParts reads a form with files of at most limit bytes each. It reads on after files that can't be kept, so that the fields
// that follow aren't lost.
func (s *sent) readParts(body io.Reader, boundary string, limit int64) error {
	if boundary == "" {
		return errMedia
	}
	in := &headReader{Reader: body}
	text := int64(maxText)
	for parts := multipart.NewReader(in, boundary); ; {
		in.left = partHeader + partBuffer
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			s.partial = false
			return s.lost
		}
		if err != nil {
			return bodyError(err)
		}
		in.left = math.MaxInt64
		head := headerSize(part)
		if text -= head; head > partHeader {
			return &limitError{"largeHeader", byteCount(partHeader)}
		}
		if name := s.known(part.FormName()); part.FileName() != "" {
			err = s.readFile(file{module: name, name: part.FileName(), contentType: part.Header.Get("Content-Type")}, part, limit)
		} else {
			var b []byte
			if b, err = io.ReadAll(io.LimitReader(part, max(text, 0)+1)); err == nil && int64(len(b)) <= text {
				err = s.add(name, string(b))
			}
			text -= int64(len(b))
		}
		if err != nil {
			return bodyError(err)
		}
		if text < 0 {
			return &limitError{"largeText", byteCount(maxText)}
		}
	}
}

// headerSize returns the bytes of a part's header.
func headerSize(p *multipart.Part) (n int64) {
	for name, values := range p.Header {
		for _, value := range values {
			n += int64(len(name) + len(value))
		}
	}
	return n
}

// readFile reads a file. It skips files after one that can't be kept, and files that no question takes, if they are small.
func (s *sent) readFile(f file, content io.Reader, limit int64) error {
	m := s.modules[f.module]
	switch {
	case m == nil && len(s.modules) > 0:
		s.faults.Add(pointerTo(f.module), "unknown_module", "is not a module of this campaign")
	case m == nil || m.Type != formsvc.FileModule:
		s.faults.Add(pointerTo(f.module), "no_file", "takes no file")
	case len(s.files) == filesAtMost:
		s.lost = &limitError{"largeFiles", filesAtMost}
	default:
		s.body.files = true
		defer func() { s.body.files = false }()
		var err error
		if s.lost == nil {
			err = s.spooled.add(&f, content, limit)
		}
		s.files = append(s.files, f)
		if errors.Is(err, errSpool) {
			s.lost, err = err, nil
		}
		if err == nil {
			_, err = io.Copy(io.Discard, content)
		}
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(content, s.stray+1))
	if s.stray -= n; err == nil && s.stray < 0 {
		err = &formsvc.ValidationError{Fields: s.faults}
	}
	return err
}

// input returns the file as an input for the service.
func (s *spool) input(f *file) formsvc.FileInput {
	return formsvc.FileInput{
		Name: f.name, ContentType: f.contentType, Module: f.module, Content: io.NewSectionReader(s.file, f.offset, f.size), SHA256: &f.sum,
	}
}
