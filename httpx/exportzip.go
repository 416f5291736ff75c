package httpx

import (
	"archive/zip"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"regexp"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/people"
)

// Limits of an archive, whose list of files is in memory until its end.
const (
	maxArchived = 20_000  // files
	maxMissing  = 1 << 20 // bytes of names of missing ones
)

// An archive is a ZIP file with the responses as a workbook and their files.
type archive struct {
	*zip.Writer

	call    *call
	files   int
	lacks   int // files that are missing
	missing strings.Builder
	begun   bool // whether an entry isn't whole yet
}

// exportZIP sends the responses as a workbook, then their files.
func (h *Handler) exportZIP(c *call) error {
	return h.exportForPeople(c, typeZIP, ".zip", writeArchive)
}

func writeArchive(c *call, e *formsvc.Export, to *bufio.Writer, p *people.Request, chosen []string) error {
	a := &archive{Writer: zip.NewWriter(to), call: c}
	part, err := a.CreateHeader(&zip.FileHeader{Name: "table.xlsx", Method: zip.Store, Modified: c.h.svc.Now()})
	if err == nil {
		err = writeWorkbook(c, e, part, p, chosen, archivePlaces)
	}
	if err != nil {
		return err
	}
	for r, err := range e.All(c.r.Context()) {
		if err == nil {
			err = a.addFiles(r)
		}
		if err != nil {
			return err
		}
	}
	if a.lacks > 0 {
		if part, err = a.Create("missing.txt"); err == nil {
			_, err = fmt.Fprintf(part, "Files that are not in the archive: %d\r\n\r\n%s", a.lacks, a.missing.String())
		}
	}
	return cmp.Or(err, a.Close())
}

// addFiles adds the files of a response.
func (a *archive) addFiles(r *formsvc.Response) error {
	c, place := a.call, archivePlaces(r)
	for f, err := range c.h.filesOf(c.r.Context(), r) {
		if err != nil {
			return err
		}
		name, why := place(f), fmt.Sprintf("the archive has %d files already; export fewer responses", c.h.archived)
		if a.files++; a.files <= c.h.archived {
			why = "the stored file " + string(f.ID) + " is damaged or missing"
			err = a.add(name, formsvc.FileKey{AccountID: f.AccountID, ID: f.ID})
			switch {
			case err == nil || errors.Is(err, formsvc.ErrNotFound): // deleted meanwhile
				continue
			case a.begun || !errors.Is(err, formsvc.ErrCorrupt):
				return err
			}
			c.h.logger.LogAttrs(c.r.Context(), slog.LevelError, "damaged file left out of an export", c.logged(slog.String("error", err.Error()))...)
		}
		if a.lacks++; a.missing.Len() < maxMissing {
			a.missing.WriteString(name + ": " + why + "\r\n")
		}
	}
	return nil
}

// packedType matches types of content that is compressed already.
var packedType = regexp.MustCompile(`^(image/(jpeg|png|gif|webp|avif|hei[cf])|audio/(mpeg|mp4|ogg|aac)|video/|application/(zip|gzip|pdf|x-7z|vnd\.(openxml|oasis)))`)

// add adds a file. A large one is read twice, since damage must be found before its entry begins.
func (a *archive) add(name string, key formsvc.FileKey) error {
	files, ctx := a.call.h.svc.Files, a.call.r.Context()
	f, err := files.Get(ctx, key)
	if err != nil {
		return err
	}
	a.call.slot.Release() // the blob store may take long; the next write or page acquires one
	read := func(do func(io.Reader) error) error {
		content, err := files.Open(ctx, &f, 0, -1)
		if err != nil {
			return err
		}
		return errors.Join(do(content), content.Close())
	}
	if f.Size > formsvc.BlockSize {
		err = read(func(content io.Reader) error {
			_, err := io.Copy(io.Discard, content)
			return err
		})
	}
	if err == nil {
		err = read(func(content io.Reader) error { return a.copy(name, &f, bufio.NewReader(content)) })
	}
	return err
}

func (a *archive) copy(name string, f *formsvc.File, content *bufio.Reader) error {
	if _, err := content.Peek(1); err != nil && !errors.Is(err, io.EOF) { // the first block is verified
		return err
	}
	header := zip.FileHeader{Name: name, Method: zip.Deflate, Modified: f.CreatedAt}
	if packedType.MatchString(f.ContentType) {
		header.Method = zip.Store
	}
	a.begun = true
	to, err := a.CreateHeader(&header)
	if err == nil {
		_, err = io.Copy(to, content)
	}
	a.begun = err != nil
	return err
}

// A filePlace returns the address of a file in a table. It is called once for each file of a response, in their order.
type filePlace func(*formsvc.File) string

// unsafeName matches what Windows doesn't take in the name of a file.
var unsafeName = regexp.MustCompile(`(?i)[<>:"/\\|?*[:cntrl:]]|[. ]+$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)`)

// archivePlaces returns the paths of a response's files in an archive. Each is another one, also where case doesn't count.
func archivePlaces(r *formsvc.Response) filePlace {
	folder := unsafeName.ReplaceAllString(r.Reference, "_$1$2")
	if folder != r.Reference { // another reference may become the same
		folder += " " + string(r.ID)
	}
	taken := map[string]bool{}
	return func(f *formsvc.File) string {
		name := unsafeName.ReplaceAllString(f.Name, "_$1$2")
		if taken[strings.ToLower(name)] {
			base, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
			name = strings.ToValidUTF8(base[:min(len(base), 150)], "") + " " + string(f.ID) + ext
		}
		taken[strings.ToLower(name)] = true
		return "files/" + folder + "/" + name
	}
}
