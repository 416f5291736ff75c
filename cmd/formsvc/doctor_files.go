package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/finding"
)

// doctorSample is how many files are looked at without --deep.
const doctorSample = 200

// blobStore opens the place for files unless it would have to be made.
func (e *examination) blobStore() blobs {
	dir, s3, err := e.blobURL()
	if err == nil && s3 == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return nil
	}
	b, err := e.openBlobs()
	if err != nil {
		return nil
	}
	return b
}

// files looks at the place for uploaded files; s and svc are nil when the database can't be used.
func (e *examination) files(ctx context.Context, s store, svc *formsvc.Service) {
	dir, s3, err := e.blobURL()
	if err != nil {
		e.found(finding.Bad("files", "Correct --blobs.", "%v", err))
		return
	}
	if s3 == nil {
		if !e.filesDir(dir) {
			return
		}
	} else {
		e.serverClock(ctx, s3.Endpoint)
	}
	b, err := e.openBlobs()
	if err != nil {
		e.found(finding.Bad("files", "See that this user may use it, and that credentials are set.", "%v", err))
		return
	}
	defer func() { _ = b.Close() }()
	if err := probe(ctx, b); err != nil {
		e.found(finding.Bad("files", "See that this user, or the AWS credentials, may list, read, write and delete there, and that there is room.",
			"a few bytes could not be stored, read back and removed: %v", err))
		return
	}
	e.found(finding.Good("files", "a few bytes were stored, read back and removed"))
	if s != nil && e.belong(ctx, svc) {
		e.strangers(ctx, b, s)
		e.missing(ctx, b, s, svc)
	}
}

// filesDir looks at the directory of files, and reports whether there is one.
func (e *examination) filesDir(dir string) bool {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		e.found(finding.Warn("files", "Start the server, which makes it; or name the right one with --blobs.", "there is no directory %s yet", dir))
		return false
	}
	if err != nil {
		e.found(finding.Bad("files", "See that this user may use it.", "%v", err))
		return false
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		e.found(finding.Warn("files", "Run: chmod 700 "+dir, "others than its owner may enter %s (mode %04o)", dir, mode))
	}
	if d, err := diskOf(dir); err == nil && d.kind != diskNetwork { // files don't need locks
		e.disk("files", dir)
	}
	return true
}

// probe stores a few bytes under a name that no file has, reads them back and removes them.
func probe(ctx context.Context, b blobstore.Store) (err error) {
	key := "doctor-" + strings.ToLower(rand.Text())
	content := []byte("formsvc doctor was here, and can be removed\n")
	if _, err := b.Put(ctx, key, bytes.NewReader(content)); err != nil {
		return err
	}
	defer func() {
		if gone := b.Delete(context.WithoutCancel(ctx), key); err == nil {
			err = gone
		}
	}()
	r, _, err := b.Open(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(r)
	if err == nil && !bytes.Equal(got, content) {
		err = errors.New("other bytes came back")
	}
	return err
}

// serverClock compares the clock of an S3 server with the one here. Without a signature
// the server refuses, and says when.
func (e *examination) serverClock(ctx context.Context, endpoint string) {
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, endpoint, nil)
	if err != nil {
		return
	}
	before := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.found(finding.Bad("files", "See that the S3 server runs and can be reached from here.", "%v", err))
		return
	}
	_ = resp.Body.Close()
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return
	}
	e.found(clockFinding(theirs, before))
}

// clockFinding compares the clock of an S3 server, which tells whole seconds, with ours.
func clockFinding(theirs, ours time.Time) finding.Finding {
	apart := theirs.Sub(ours).Round(time.Second)
	if apart.Abs() > time.Minute { // AWS refuses at 15
		return finding.Bad("clock", "Keep both clocks right with NTP: the server refuses requests that are signed at the wrong time.",
			"the clock of the S3 server is %v ahead of the one here", apart)
	}
	return finding.Good("clock", "that of the S3 server and the one here are %v apart", apart.Abs())
}

// belong looks whether the files belong to the database, or may, and reports whether.
func (e *examination) belong(ctx context.Context, svc *formsvc.Service) bool {
	err := svc.Files.Claim(ctx, &formsvc.ClaimOptions{DryRun: true})
	switch {
	case errors.Is(err, formsvc.ErrOtherBlobs):
		e.found(finding.Bad("files", "A server refuses to start on them: name those of this database with --blobs. "+
			"To go on with what the other database has, move its data too: formsvc copy", "%v", err))
	case err != nil:
		e.found(finding.Bad("files", "See what is said of the place above.", "%v", err))
	default:
		e.found(finding.Good("files", "they belong to this database"))
	}
	return err == nil
}

// strangers looks for what isn't ours, as in a bucket that is shared.
func (e *examination) strangers(ctx context.Context, b blobstore.Store, s store) {
	const advice = "Give this database a directory, or a bucket or prefix, of its own: the daily sweep removes what it doesn't know."
	var ids []formsvc.ID
	foreign := ""
	seen := 0
	for info, err := range b.List(ctx, "") {
		if err != nil {
			e.found(finding.Bad("files", "See that the credentials may list.", "they can't be listed: %v", err))
			return
		}
		if info.Key == formsvc.MarkerKey {
			continue
		}
		id := formsvc.ID(info.Key[min(len(info.Key), 3):])
		if !id.Valid() || formsvc.BlobKey(id) != info.Key {
			foreign = info.Key
		} else if time.Since(info.ModTime) > formsvc.SweepAge {
			ids = append(ids, id)
		}
		if seen++; seen == doctorSample {
			break
		}
	}
	unknown, err := s.UnknownFiles(ctx, ids)
	switch {
	case err != nil:
		e.found(finding.Bad("files", "See what is said of the database.", "%v", err))
	case foreign != "":
		e.found(finding.Warn("files", advice, "there is something else, such as %s", foreign))
	case len(unknown) > 0:
		e.found(finding.Warn("files", advice+" If it is the right one, formsvc files sweep --dry-run has more.",
			"of %d that are older than a day, %d belong to no file of the database", len(ids), len(unknown)))
	default:
		e.found(finding.Good("files", "nothing else is beside them (%d looked at)", seen))
	}
}

// missing looks whether the bytes of files are there, and with --deep reads them all.
func (e *examination) missing(ctx context.Context, b blobstore.Store, s store, svc *formsvc.Service) {
	const advice = "Name the right place with --blobs; or bring the files back from a backup. formsvc files verify lists them."
	if e.Deep {
		damaged := 0
		checked, err := svc.Files.Verify(ctx, func(*formsvc.File, error) error {
			damaged++
			return nil
		})
		switch {
		case err != nil:
			e.found(finding.Bad("files", "See what is said of the place above.", "after %d files: %v", checked, err))
		case damaged > 0:
			e.found(finding.Bad("files", advice, "%d of %d files are missing or damaged", damaged, checked))
		default:
			e.found(finding.Good("files", "all %d were read and are what was uploaded", checked))
		}
		return
	}
	page, err := s.Files(ctx, formsvc.FileQuery{AllAccounts: true, Page: formsvc.PageQuery{Limit: doctorSample, Ascending: true}})
	list := page.Items
	missing := 0
	for i := range list {
		info, statErr := b.Stat(ctx, formsvc.BlobKey(list[i].ID))
		if errors.Is(statErr, fs.ErrNotExist) || statErr == nil && info.Size != list[i].Size {
			missing++
		} else if err == nil {
			err = statErr
		}
	}
	switch {
	case err != nil:
		e.found(finding.Bad("files", "See what is said of the place above.", "%v", err))
	case missing > 0:
		e.found(finding.Bad("files", advice, "of %d files that the database knows %d are not there", len(list), missing))
	default:
		e.found(finding.Good("files", "those that the database knows are there (%d looked at)", len(list)))
	}
}
