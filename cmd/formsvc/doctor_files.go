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

// doctorSample is the number of files that are checked without --deep.
const doctorSample = 200

// blobStore opens the blob store, or returns nil if that would create it or fails.
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

// files checks the blob store; s and svc are nil if the database is unusable.
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
		e.found(finding.Bad("files", "Make sure that this user has access, and that credentials are set.", "%v", err))
		return
	}
	defer func() { _ = b.Close() }()
	if err := probe(ctx, b); err != nil {
		e.found(finding.Bad("files", "Make sure that this user, or the AWS credentials, can list, read, write and delete there, and that there is free space.",
			"storing, reading and removing a test file failed: %v", err))
		return
	}
	e.found(finding.Good("files", "a test file was stored, read and removed"))
	if s != nil && e.belong(ctx, svc) {
		e.strangers(ctx, b, s)
		e.missing(ctx, b, s, svc)
	}
}

// filesDir checks the directory of files, and reports whether it exists.
func (e *examination) filesDir(dir string) bool {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		e.found(finding.Warn("files", "Start the server, which creates it, or set --blobs to the right one.", "directory %s doesn't exist yet", dir))
		return false
	}
	if err != nil {
		e.found(finding.Bad("files", "Make sure that this user has access to it.", "%v", err))
		return false
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		e.found(finding.Warn("files", "Run: chmod 700 "+dir, "%s is accessible to other users (mode %04o)", dir, mode))
	}
	if d, err := diskOf(dir); err == nil && d.kind != diskNetwork { // files don't need locks
		e.disk("files", dir)
	}
	return true
}

// probe stores a few bytes under an unused key, reads them back and removes them.
func probe(ctx context.Context, b blobstore.Store) (err error) {
	key := "doctor-" + strings.ToLower(rand.Text())
	content := []byte("test file of formsvc doctor; can be removed\n")
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
		err = errors.New("the bytes read differ from those written")
	}
	return err
}

// serverClock compares the clock of an S3 server with this machine's. The server rejects the unsigned request, with a Date
// header.
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
		e.found(finding.Bad("files", "Make sure that the S3 server is running and reachable from here.", "%v", err))
		return
	}
	_ = resp.Body.Close()
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return
	}
	e.found(clockFinding(theirs, before))
}

// clockFinding compares the clock of an S3 server, in whole seconds, with this machine's.
func clockFinding(theirs, ours time.Time) finding.Finding {
	apart := theirs.Sub(ours).Round(time.Second)
	if apart.Abs() > time.Minute { // AWS refuses at 15
		return finding.Bad("clock", "Synchronize both clocks with NTP: the S3 server rejects requests that are signed at the wrong time.",
			"the S3 server's clock is %v ahead of this machine's", apart)
	}
	return finding.Good("clock", "the S3 server's clock and this machine's are %v apart", apart.Abs())
}

// belong reports whether the files belong to the database or may be claimed by it.
func (e *examination) belong(ctx context.Context, svc *formsvc.Service) bool {
	err := svc.Files.Claim(ctx, &formsvc.ClaimOptions{DryRun: true})
	switch {
	case errors.Is(err, formsvc.ErrOtherBlobs):
		e.found(finding.Bad("files", "A server refuses to start with them: set --blobs to the files of this database. "+
			"To continue with the data of the other database, move that too: formsvc copy", "%v", err))
	case err != nil:
		e.found(finding.Bad("files", "See the findings above.", "%v", err))
	default:
		e.found(finding.Good("files", "they belong to this database"))
	}
	return err == nil
}

// strangers looks for blobs that aren't files of the database, as in a shared bucket.
func (e *examination) strangers(ctx context.Context, b blobstore.Store, s store) {
	const advice = "Give this database its own directory, bucket or prefix: the daily sweep removes files that it doesn't know."
	var ids []formsvc.ID
	foreign := ""
	seen := 0
	for info, err := range b.List(ctx, "") {
		if err != nil {
			e.found(finding.Bad("files", "Make sure that the credentials allow listing.", "they can't be listed: %v", err))
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
		e.found(finding.Bad("files", "See the findings about the database.", "%v", err))
	case foreign != "":
		e.found(finding.Warn("files", advice, "other files are stored there, such as %s", foreign))
	case len(unknown) > 0:
		e.found(finding.Warn("files", advice+" If it is the right one, run formsvc files sweep --dry-run for details.",
			"of %d files older than a day, %d are not in the database", len(ids), len(unknown)))
	default:
		e.found(finding.Good("files", "no other files are stored there (%d checked)", seen))
	}
}

// missing checks that the bytes of files exist, and with --deep reads them all.
func (e *examination) missing(ctx context.Context, b blobstore.Store, s store, svc *formsvc.Service) {
	const advice = "Set --blobs to the right place, or restore the files from a backup. formsvc files verify lists them."
	if e.Deep {
		damaged := 0
		checked, err := svc.Files.Verify(ctx, func(*formsvc.File, error) error {
			damaged++
			return nil
		})
		switch {
		case err != nil:
			e.found(finding.Bad("files", "See the findings above.", "after %d files: %v", checked, err))
		case damaged > 0:
			e.found(finding.Bad("files", advice, "%d of %d files are missing or damaged", damaged, checked))
		default:
			e.found(finding.Good("files", "all %d files were read and are intact", checked))
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
		e.found(finding.Bad("files", "See the findings above.", "%v", err))
	case missing > 0:
		e.found(finding.Bad("files", advice, "of %d files in the database, %d are missing", len(list), missing))
	default:
		e.found(finding.Good("files", "the files in the database are there (%d checked)", len(list)))
	}
}
