package formsvc_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func TestUpload(t *testing.T) {
	w := newFileWorld(t)
	content := pattern(formsvc.BlockSize + 10)
	f := must(w.upload(formsvc.FileInput{
		Name: "../Plän.pdf", ContentType: "Application/PDF", Module: "plan",
		Content: iotest.OneByteReader(iotest.DataErrReader(bytes.NewReader(content))),
	}))
	want := formsvc.File{
		ID: f.ID, AccountID: w.account, CampaignID: w.response.CampaignID, ResponseID: w.response.ID, Name: "Plän.pdf",
		ContentType: "application/pdf", Module: "plan", Size: int64(len(content)), SHA256: sha256.Sum256(content),
		Blocks: f.Blocks, CreatedAt: start(),
	}
	if len(f.Blocks) != 8 || fmt.Sprint(f) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", f, want)
	}
	kept, err := w.svc.Files.Get(w.ctx, fileKey(&f))
	if err != nil || fmt.Sprint(kept) != fmt.Sprint(f) {
		t.Errorf("kept %+v, %v", kept, err)
	}
	page, err := w.svc.Files.List(w.ctx, w.response.Key(), formsvc.PageQuery{})
	if err != nil || page.Total != 1 || len(page.Items) != 1 || page.Items[0].ID != f.ID || page.Items[0].Blocks != nil {
		t.Errorf("list %+v, %v", page, err)
	}
	if got, err := w.read(&kept, 0, -1); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	wantFileEvent(t, w.store.take(), &f)
}

func wantFileEvent(t *testing.T, events []formsvc.Event, f *formsvc.File) {
	t.Helper()
	if !slices.Equal(eventTypes(events), []formsvc.EventType{webhook.FileUploaded}) {
		t.Fatalf("events %v", eventTypes(events))
	}
	var payload struct {
		Data struct {
			Campaign struct{ Title string }
			Response struct{ UUID string }
			File     json.RawMessage
		}
	}
	wantError(t, json.Unmarshal(events[0].Payload, &payload), nil)
	file := fmt.Sprintf(`{"uuid":%q,"name":"Plän.pdf","contentType":"application/pdf","size":%d,"sha256":"%x","module":"plan",`+
		`"responseUuid":%q,"campaignUuid":%q,"createdAt":"2026-11-21T08:30:00.123Z"}`,
		f.ID, f.Size, f.SHA256, f.ResponseID, f.CampaignID)
	if payload.Data.Campaign.Title == "" || payload.Data.Response.UUID != string(f.ResponseID) || string(payload.Data.File) != file {
		t.Errorf("payload %s\nwant file %s", events[0].Payload, file)
	}
}

// A refused upload leaves nothing behind.
func TestRefusedUploadLeavesNothing(t *testing.T) {
	w := newFileWorld(t, func(o *formsvc.Options) { o.MaxFile = 1000 })
	broken := errors.New("the client left")
	sum := sha256.Sum256([]byte("something else"))
	content := func() io.Reader { return bytes.NewReader(pattern(500)) }
	for _, x := range []struct {
		label string
		in    formsvc.FileInput
		want  error
	}{
		{"one byte more than allowed", formsvc.FileInput{Content: bytes.NewReader(pattern(1001))}, formsvc.ErrTooLarge},
		{"no end", formsvc.FileInput{Content: endless{}}, formsvc.ErrTooLarge},
		{"cut off", formsvc.FileInput{Content: io.MultiReader(content(), iotest.ErrReader(broken))}, broken},
		{"cut off, with the end as the cause", formsvc.FileInput{
			Content: io.MultiReader(content(), iotest.ErrReader(fmt.Errorf("%w: %w", broken, io.EOF))),
		}, broken},
		{"another hash", formsvc.FileInput{Content: content(), SHA256: &sum}, formsvc.ErrDigest},
		{"refused at the end", formsvc.FileInput{Content: content(), Complete: func(*formsvc.FileInput) error { return broken }}, broken},
		{"a bad module", formsvc.FileInput{Content: content(), Module: strings.Repeat("x", 201)}, formsvc.ErrInvalid},
		{"a bad module at the end", formsvc.FileInput{Content: content(), Complete: func(in *formsvc.FileInput) error {
			in.Module = "nul\x00"
			return nil
		}}, formsvc.ErrInvalid},
	} {
		wantError(t, failure(w.upload(x.in)), x.want)
		w.nothing(x.label)
	}
	_, err := w.upload(formsvc.FileInput{Content: bytes.NewReader(pattern(1001))})
	if tooLarge, ok := errors.AsType[*formsvc.FileSizeError](err); !ok || tooLarge.Limit != 1000 {
		t.Errorf("the error does not name the limit: %v", err)
	}
	w.uploaded(pattern(1000))
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Complete may set metadata at the end of the content.
func TestUploadCallsComplete(t *testing.T) {
	w := newFileWorld(t)
	sum := sha256.Sum256(nil)
	calls := 0
	f, err := w.upload(formsvc.FileInput{
		Name: "early", Content: strings.NewReader(""), SHA256: &sum,
		Complete: func(in *formsvc.FileInput) error {
			calls++
			in.Name, in.ContentType, in.Module = "late", "text/plain; charset=utf-8", "late module"
			return nil
		},
	})
	if err != nil || calls != 1 || f.Name != "late" || f.ContentType != "text/plain; charset=utf-8" || f.Module != "late module" {
		t.Errorf("%+v, %v after %d calls", f, err, calls)
	}
	if b, err := w.read(&f, 0, -1); err != nil || len(b) != 0 {
		t.Errorf("read %q, %v", b, err)
	}
}

// A failing store or blob store leaves no file and, if possible, no blob.
func TestFailedUploadLeavesNothing(t *testing.T) {
	in := func() formsvc.FileInput { return formsvc.FileInput{Content: bytes.NewReader(pattern(10))} }
	w := newFileWorld(t)
	for cause, want := range map[error]error{
		blobstore.ErrUnavailable: formsvc.ErrUnavailable, blobstore.ErrNoSpace: formsvc.ErrNoSpace,
	} {
		w.shelf.fail("Put", fmt.Errorf("disk: %w", cause))
		_, err := w.upload(in())
		wantError(t, err, want)
		wantError(t, err, cause)
	}
	w.shelf.disturb(nil)
	w.nothing("the blob store fails")

	w.store.disturb(failFirst("CreateFile", 1, formsvc.ErrUnavailable))
	_, err := w.upload(in())
	wantError(t, err, formsvc.ErrUnavailable)
	w.nothing("the store fails")

	_, err = w.upload(formsvc.FileInput{
		Content:  bytes.NewReader(pattern(10)),
		Complete: func(*formsvc.FileInput) error { return w.svc.Responses.Delete(w.ctx, w.response.Key(), nil) },
	})
	wantError(t, err, formsvc.ErrNotFound)
	if keys := w.shelf.keys(t); len(keys) > 0 {
		t.Errorf("the response was deleted meanwhile: blobs %q", keys)
	}
}

// A store may have created the file although it failed: then the bytes stay.
func TestUploadWithUnknownOutcomeKeepsTheBlob(t *testing.T) {
	w := newFileWorld(t)
	lost := fmt.Errorf("%w: %w", formsvc.ErrUnavailable, formsvc.ErrUnknownOutcome)
	w.store.after = func(method string) error {
		if method == "CreateFile" {
			return lost
		}
		return nil
	}
	wantError(t, failure(w.upload(formsvc.FileInput{Content: bytes.NewReader(pattern(10))})), formsvc.ErrUnknownOutcome)
	wantDamaged(t, w)
	if keys := w.shelf.keys(t); len(keys) != 1 {
		t.Errorf("blobs %q", keys)
	}
}

func TestFilesAreUnsupportedWithoutBlobs(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	f := formsvc.File{}
	for _, err := range []error{
		failure(w.svc.Files.Upload(w.ctx, r.Key(), formsvc.FileInput{Content: strings.NewReader("")})),
		failure(w.svc.Files.Get(w.ctx, fileKey(&f))), failure(w.svc.Files.Open(w.ctx, &f, 0, -1)),
		failure(w.svc.Files.List(w.ctx, r.Key(), formsvc.PageQuery{})), failure(w.svc.Files.Sweep(w.ctx, nil)), failure(w.svc.Files.Verify(w.ctx, nil)),
	} {
		wantError(t, err, errors.ErrUnsupported)
	}
	wantError(t, errors.Join(w.svc.Ready(w.ctx), w.svc.Responses.Delete(w.ctx, r.Key(), nil)), nil)
}

// Ready returns in time even if the blob store hangs, as a file system on a network may. That holds one goroutine.
func TestReadyWhileBlobsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var asked atomic.Int32
		w := newFileWorld(t)
		w.shelf.disturb(func(method, _ string) error {
			if method == "Stat" {
				asked.Add(1)
				<-hang
			}
			return nil
		})
		began := time.Now()
		for range 20 {
			wantError(t, w.svc.Ready(t.Context()), context.DeadlineExceeded)
		}
		if took := time.Since(began); asked.Load() != 1 || took > 100*time.Second { // on the clock of the bubble
			t.Errorf("the blob store was asked %d times, which took %v", asked.Load(), took)
		}
		close(hang)
		synctest.Wait()
		w.shelf.disturb(nil)
		wantError(t, w.svc.Ready(t.Context()), nil)
	})
}

// A deletion doesn't wait for a blob store that hangs on each file.
func TestDeleteWhileBlobsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, tried := newFileWorld(t), 0
		for range 30 {
			must(w.upload(formsvc.FileInput{Content: strings.NewReader("x")}))
		}
		w.shelf.disturb(func(method, _ string) error {
			if method == "Delete" {
				tried++
				time.Sleep(9 * time.Second) // of the fake clock
			}
			return nil
		})
		wantError(t, w.svc.Responses.Delete(w.ctx, w.response.Key(), nil), nil)
		equal(t, tried, 2, "%d blobs were tried")
		w.shelf.disturb(nil)
	})
}

// Deleting a response deletes its files and keeps those of others.
func TestDeleteResponse(t *testing.T) {
	w := newFileWorld(t)
	w.uploaded(pattern(10))
	w.uploaded(pattern(20))
	c := must(w.svc.Campaigns.Get(w.ctx, formsvc.CampaignKey{AccountID: w.account, ID: w.response.CampaignID}))
	gone := w.response
	w.response = w.submitted(&c)
	stays := w.uploaded(pattern(30))
	wantError(t, w.svc.Responses.Delete(w.ctx, gone.Key(), nil), nil)
	equalAll(t, w.shelf.keys(t), []string{formsvc.BlobKey(stays.ID)}, "blobs %q")
	wantError(t, w.svc.Responses.Delete(w.ctx, gone.Key(), nil), formsvc.ErrNotFound)
	wantError(t, w.svc.Responses.Delete(w.ctx, w.response.Key(), &formsvc.DeleteOptions{IfVersion: 7}), formsvc.ErrStale)

	// Blobs stay if the transaction may still be rolled back.
	wantError(t, w.svc.With(w.store).Responses.Delete(w.ctx, w.response.Key(), nil), nil)
	if keys := w.shelf.keys(t); len(keys) != 1 {
		t.Errorf("blobs %q", keys)
	}
}

// The event has identifiers alone, and only a webhook that names it gets it.
func TestDeleteResponseRaisesItsEvent(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	all := w.hook()
	named := w.hook(func(in *formsvc.WebhookInput) { in.Events = []formsvc.EventType{webhook.ResponseDeleted} })
	w.store.take()
	wantError(t, w.svc.As(formsvc.Actor{Type: webhook.ActorKey, ID: "x", Name: "left out"}).Responses.Delete(w.ctx, r.Key(), &formsvc.DeleteOptions{IfVersion: r.Version}), nil)
	events := w.store.take()
	if !slices.Equal(eventTypes(events), named.Events) {
		t.Fatalf("events %q", eventTypes(events))
	}
	want := fmt.Sprintf(`{"id":%q,"event":"response.deleted","timestamp":"2026-11-21T08:30:00.123Z",`+
		`"data":{"campaign":{"uuid":%q},"response":{"uuid":%q,"reference":%q},"actor":{"type":"key","id":"x"}}}`, events[0].ID, c.ID, r.ID, r.Reference)
	equal(t, string(events[0].Payload), want, "payload %s")
	if n, m := w.deliveries(&all, ""), w.deliveries(&named, ""); n != 0 || m != 1 {
		t.Errorf("%d deliveries to the receiver of all, %d to the one that names it", n, m)
	}
	trail := w.trail()
	if last := trail[len(trail)-1]; last.Action != formsvc.AuditResponseDeleted || last.Actor != "key x" || last.Target != r.ID {
		t.Errorf("audit trail %+v", trail)
	}
}
