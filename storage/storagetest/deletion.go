package storagetest

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func deletionTests() []test {
	return []test{
		{"response and files are deleted", testDeleteResponse},
		{"reference can be used again", testDeleteFreesReference},
		{"events are kept", testDeleteKeepsEvents},
		{"change commits with the deletion", testDeleteWithChange},
		{"failed change deletes nothing", testDeleteRefused},
		{"deleted files are unknown", testDeletedFilesUnknown},
		{"one of many concurrent deletions wins", testDeleteOnce},
		{"count is right beside creates", testDeleteWhileAdding},
		{"no file is left without a response", testDeleteWhileUploading},
		{"deleted response can't be updated", testDeleteWhileUpdating},
	}
}

func testDeleteResponse(w *world) {
	sc := w.addScene()
	second := w.addCampaign(sc.account.ID)
	r, _ := w.addResponse(&sc.campaign)
	bare, _ := w.addResponse(&sc.campaign)
	neighbour, _ := w.addResponse(&sc.campaign)
	elsewhere, _ := w.addResponse(&second)
	high, low := w.newFile(&r), w.newFile(&r)
	high.ID, low.ID = low.ID, high.ID
	kept := []formsvc.File{w.addFile(&neighbour), w.addFile(&elsewhere)}
	w.must("CreateFile", w.createFile(high))
	w.must("CreateFile", w.createFile(low))

	files, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
	w.must("DeleteResponse", err)
	slices.Sort(files)
	w.same("files of the deleted response", files, []formsvc.ID{low.ID, high.ID})
	w.wantGone(&r, low, high)
	w.wantResponses(&sc.campaign, bare, neighbour)
	files, err = w.store.DeleteResponse(w.ctx, keyOf(&bare), nil)
	if err != nil || len(files) != 0 {
		w.Errorf("DeleteResponse of one without files: %d files, %v", len(files), err)
	}
	w.wantResponses(&sc.campaign, neighbour)
	w.wantResponses(&second, elsewhere)
	w.same("files of others", w.allFiles(), kept)
	w.same("files of a neighbour", w.files(&neighbour), withoutBlocks(kept[0]))
}

// wantGone fails the test if a deleted response still has any records, or if new ones can be added to it.
func (w *world) wantGone(r *formsvc.Response, files ...formsvc.File) {
	w.Helper()
	_, err := w.store.Response(w.ctx, keyOf(r))
	w.wantError("Response that was deleted", err, formsvc.ErrNotFound)
	_, err = w.store.DeleteResponse(w.ctx, keyOf(r), nil)
	w.wantError("DeleteResponse, again", err, formsvc.ErrNotFound)
	_, err = w.store.UpdateResponse(w.ctx, keyOf(r), func(*formsvc.Response) (formsvc.Change, error) {
		w.Errorf("UpdateResponse had a function decide about what was deleted")
		return formsvc.Change{}, nil
	})
	w.wantError("UpdateResponse of what was deleted", err, formsvc.ErrNotFound)
	_, err = w.store.Files(w.ctx, formsvc.FileQuery{AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID})
	w.wantError("Files of what was deleted", err, formsvc.ErrNotFound)
	e := w.newEvent(r)
	w.wantError("CreateFile for what was deleted", w.createFile(w.newFile(r), e), formsvc.ErrNotFound)
	w.noEvents("CreateFile for what was deleted", e)
	for i := range files {
		_, err := w.store.File(w.ctx, fileKey(&files[i]))
		w.wantError("File of what was deleted", err, formsvc.ErrNotFound)
	}
}

// wantResponses fails the test unless the campaign has exactly these responses, and counts them.
func (w *world) wantResponses(c *formsvc.Campaign, want ...formsvc.Response) {
	w.Helper()
	w.same("responses", w.responses(c), want)
	got, err := w.store.Campaign(w.ctx, campaignKey(c))
	w.must("Campaign", err)
	for _, q := range []formsvc.ResponseQuery{
		{Filter: formsvc.ResponseFilter{Status: []string{want[0].Status}}}, {Page: formsvc.PageQuery{Offset: 10}}, {},
	} {
		q.AccountID, q.CampaignID = c.AccountID, c.ID
		page, err := w.store.Responses(w.ctx, q)
		w.must("Responses", err)
		if n := int64(len(want)); page.Total != n || got.ResponseCount != n {
			w.Errorf("%d responses: total %d, counted %d", n, page.Total, got.ResponseCount)
		}
	}
}

func testDeleteFreesReference(w *world) {
	sc := w.addScene()
	second := w.addCampaign(sc.account.ID)
	r, _ := w.addResponse(&sc.campaign)
	for range 2 {
		_, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
		w.must("DeleteResponse", err)
		reference := r.Reference
		r = w.newResponse(&second)
		r.Reference = reference
		w.must("CreateResponse with the reference of a deleted one", w.create(r, w.newEvent(&r)))
		again := w.newResponse(&sc.campaign)
		again.Reference = reference
		w.wantError("CreateResponse with a reference that was given again", w.create(again), formsvc.ErrConflict)
		w.wantResponses(&second, r)
	}
}

func testDeleteKeepsEvents(w *world) {
	sc := w.addScene()
	r, created := w.addResponse(&sc.campaign)
	uploaded := w.newEvent(&r)
	w.must("CreateFile", w.createFile(w.newFile(&r), uploaded))
	q := formsvc.EventQuery{AccountID: sc.account.ID}
	w.feed(q, &uploaded)
	_, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
	w.must("DeleteResponse", err)
	got, _ := w.feed(q, &uploaded)
	w.same("events", got, []formsvc.Event{created, uploaded})
	w.wantHeard([]formsvc.Webhook{sc.hook}, []formsvc.Event{created, uploaded})
	if claims := w.claim(nextDay()); len(claims) != 2 {
		w.Errorf("%d claims, want 2", len(claims))
	}
}

func testDeleteWithChange(w *world) {
	sc := w.addScene()
	named := w.newWebhook(sc.account.ID)
	named.Events = []formsvc.EventType{webhook.ResponseDeleted}
	w.must("CreateWebhook", w.subscribe(named, formsvc.MaxWebhooks))
	r, created := w.addResponse(&sc.campaign)
	f := w.addFile(&r)
	deleted, entry := w.newEvent(&r), w.newAudit(sc.account.ID)
	deleted.Type = webhook.ResponseDeleted
	files, err := w.store.DeleteResponse(w.ctx, keyOf(&r), func(got *formsvc.Response) (formsvc.Change, error) {
		w.same("what decide is given", *got, r)
		return formsvc.Change{Events: []formsvc.Event{deleted}, Audit: &entry}, nil
	})
	w.must("DeleteResponse", err)
	w.same("files of the deleted response", files, []formsvc.ID{f.ID})
	w.wantGone(&r, f)
	w.wantHeard([]formsvc.Webhook{sc.hook, named}, []formsvc.Event{created, deleted})
	w.wantEvent(&deleted)
	got, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &deleted)
	w.same("events", got, []formsvc.Event{created, deleted})
	got, _ = w.feed(formsvc.EventQuery{AccountID: sc.account.ID, Types: []formsvc.EventType{webhook.ResponseDeleted}}, &deleted)
	w.same("events of that type", got, []formsvc.Event{deleted})
	page, err := w.store.Audit(w.ctx, formsvc.AuditQuery{AccountID: sc.account.ID, Action: entry.Action})
	w.must("Audit", err)
	w.same("audit entries", page.Items, []formsvc.AuditEntry{entry})
}

func testDeleteRefused(w *world) {
	sc := w.addScene()
	r, created := w.addResponse(&sc.campaign)
	f := w.addFile(&r)
	unchanged := func() {
		w.Helper()
		w.wantResponses(&sc.campaign, r)
		w.same("files", w.files(&r), withoutBlocks(f))
		w.wantHeard([]formsvc.Webhook{sc.hook}, []formsvc.Event{created})
	}
	_, err := w.store.DeleteResponse(w.ctx, keyOf(&r), func(*formsvc.Response) (formsvc.Change, error) {
		return formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}}, formsvc.ErrStale
	})
	w.wantError("DeleteResponse that decide refuses", err, formsvc.ErrStale)
	unchanged()
	_, err = w.store.DeleteResponse(w.ctx, keyOf(&r), func(*formsvc.Response) (formsvc.Change, error) {
		return formsvc.Change{Events: []formsvc.Event{created}}, nil
	})
	if err == nil {
		w.Errorf("DeleteResponse with an event that there is already succeeded")
	}
	unchanged()
}

func testDeletedFilesUnknown(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	other, _ := w.addResponse(&sc.campaign)
	f, kept := w.addFile(&r), w.addFile(&other)
	_, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
	w.must("DeleteResponse", err)
	both := []formsvc.ID{kept.ID, f.ID}
	w.wantUnknown("a deleted file and another", both, both[1:])
	w.wantBarred("a deleted file and another", both, both[1:])
	f.ResponseID = other.ID
	w.wantError("CreateFile with the barred ID of a deleted file", w.createFile(f), formsvc.ErrConflict)
}

func testDeleteOnce(w *world) {
	sc := w.addScene()
	stays, _ := w.addResponse(&sc.campaign)
	for range 5 {
		r, _ := w.addResponse(&sc.campaign)
		f := w.addFile(&r)
		var mu sync.Mutex
		var files []formsvc.ID
		won := w.race(8, formsvc.ErrNotFound, func() error {
			got, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
			mu.Lock()
			defer mu.Unlock()
			files = append(files, got...)
			return err
		})
		w.same("files of the deleted response", files, []formsvc.ID{f.ID})
		if won != 1 {
			w.Errorf("%d of 8 deleted the response", won)
		}
	}
	w.wantResponses(&sc.campaign, stays)
}

// testDeleteWhileAdding adds responses and deletes every other one concurrently.
func testDeleteWhileAdding(w *world) {
	sc := w.addScene()
	var mu sync.Mutex
	var want []formsvc.Response
	w.writeMany(func(_, n int) {
		r := w.newResponse(&sc.campaign)
		w.check("CreateResponse", w.create(r))
		if n%2 == 0 {
			_, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
			w.check("DeleteResponse", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		want = append(want, r)
	})
	slices.SortFunc(want, func(a, b formsvc.Response) int { return cmp.Compare(a.ID, b.ID) })
	w.wantResponses(&sc.campaign, want...)
}

// testDeleteWhileUploading adds files to a response that is being deleted. Each file must be among those that the
// deletion returns, or be refused.
func testDeleteWhileUploading(w *world) { w.wantNoStrayFiles([]Store{w.store}) }

func (w *world) wantNoStrayFiles(stores []Store) {
	w.Helper()
	sc := w.addScene()
	const uploads, rounds = 12, 10
	for round := range rounds {
		r, _ := w.addResponse(&sc.campaign)
		list, created := make([]formsvc.File, uploads), make([]error, uploads)
		for i := range list {
			list[i] = w.newFile(&r)
		}
		var deleted []formsvc.ID
		w.together(uploads+1, func(i int) {
			store := stores[(i+round)%len(stores)]
			if i < uploads {
				created[i] = store.CreateFile(w.ctx, list[i], func(r *formsvc.Response) (formsvc.Change, error) {
					return formsvc.Change{Events: []formsvc.Event{w.newEvent(r)}}, nil
				})
				return
			}
			var err error
			deleted, err = store.DeleteResponse(w.ctx, keyOf(&r), nil)
			w.check("DeleteResponse", err)
		})
		named := set(deleted)
		for i := range list {
			if named[list[i].ID] != (created[i] == nil) {
				w.Errorf("CreateFile returned %v, and DeleteResponse named the file: %t", created[i], named[list[i].ID])
			}
			if created[i] != nil {
				w.wantError("CreateFile beside DeleteResponse", created[i], formsvc.ErrNotFound)
			}
		}
	}
	if files := w.allFiles(); len(files) != 0 {
		w.Errorf("%d files have no response", len(files))
	}
}

func testDeleteWhileUpdating(w *world) {
	sc := w.addScene()
	for range 10 {
		r, _ := w.addResponse(&sc.campaign)
		before := len(w.deliveries(&sc.hook))
		updated := make([]error, 6)
		w.together(len(updated)+1, func(i int) {
			if i < len(updated) {
				updated[i] = incrementResponse(w, w.store, &r)
				return
			}
			_, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
			w.check("DeleteResponse", err)
		})
		changes := 0
		for _, err := range updated {
			if err == nil {
				changes++
			} else if !errors.Is(err, formsvc.ErrNotFound) {
				w.Errorf("UpdateResponse beside DeleteResponse: %v", err)
			}
		}
		w.wantGone(&r)
		if n := len(w.deliveries(&sc.hook)) - before; n != changes {
			w.Errorf("%d deliveries of %d changes", n, changes)
		}
	}
}
