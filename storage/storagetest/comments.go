package storagetest

import (
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func commentTests() []test {
	return []test{
		{"every field is kept", testCommentMembers},
		{"times are kept to the microsecond", testCommentTimes},
		{"texts are kept byte for byte", testCommentTexts},
		{"invalid texts are refused", testRefusedComments},
		{"taken ID is refused", testCommentTaken},
		{"the change commits with the comment", testCommentChange},
		{"taken key is refused", testCommentRepeated},
		{"unknown response is not found", testCommentOfNothing},
		{"deleted with their response", testDeletedComments},
		{"none is left without a response", testNoStrayComments},
	}
}

func (w *world) newComment(r *formsvc.Response) formsvc.Comment {
	id, at := w.next()
	return formsvc.Comment{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Body: "comment " + string(id),
		Author: "Grace", CreatedAt: at,
	}
}

// createComment stores a comment, with events.
func (w *world) createComment(c formsvc.Comment, events ...formsvc.Event) error {
	return w.store.CreateComment(w.ctx, c, formsvc.Change{Events: events})
}

// addComment adds a comment that raises no event.
func (w *world) addComment(r *formsvc.Response) formsvc.Comment {
	w.Helper()
	c := w.newComment(r)
	w.must("CreateComment", w.createComment(c))
	return c
}

func (w *world) comments(r *formsvc.Response) []formsvc.Comment {
	w.Helper()
	return all(w, "Comments", func(c *formsvc.Comment) formsvc.ID { return c.ID },
		func(q formsvc.PageQuery) (formsvc.Page[formsvc.Comment], error) {
			return w.store.Comments(w.ctx, formsvc.CommentQuery{
				AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Page: q,
			})
		})
}

// commentLister lists the comments on a new response. Another response has comments too.
func (w *world) commentLister(c *formsvc.Campaign) lister {
	w.Helper()
	r, _ := w.addResponse(c)
	other, _ := w.addResponse(c)
	return lister{
		name: "Comments",
		add: func(id formsvc.ID) formsvc.ID {
			comment := w.newComment(&r)
			comment.ID = id
			w.check("CreateComment", w.createComment(comment))
			w.check("CreateComment", w.createComment(w.newComment(&other)))
			return id
		},
		fetch: func(q formsvc.PageQuery) ([]formsvc.ID, int64, bool, error) {
			page, err := w.store.Comments(w.ctx, formsvc.CommentQuery{
				AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Page: q,
			})
			return ids(&page, func(c *formsvc.Comment) formsvc.ID { return c.ID }), page.Total, page.More, err
		},
	}
}

func testCommentMembers(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	r, _ := w.addResponse(&c)
	if list := w.comments(&r); len(list) != 0 {
		w.Errorf("%d comments on a new response", len(list))
	}
	plain, anonymous := w.newComment(&r), w.newComment(&r)
	anonymous.Author = ""
	w.must("CreateComment", w.createComment(plain))
	w.must("CreateComment", w.createComment(anonymous))
	w.same("comments", w.comments(&r), []formsvc.Comment{plain, anonymous})
	got, err := w.store.Response(w.ctx, keyOf(&r))
	w.must("Response", err)
	w.same("the response with comments", got, r)
}

func testCommentTimes(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	r, _ := w.addResponse(&c)
	comment := w.newComment(&r)
	comment.CreatedAt = time.Date(2026, 7, 1, 1, 2, 3, 999_999_999, time.FixedZone("east", 5*3600+1800))
	w.must("CreateComment", w.createComment(comment))
	comment.CreatedAt = time.Date(2026, 6, 30, 19, 32, 3, 999_999_000, time.UTC)
	w.same("comments", w.comments(&r), []formsvc.Comment{comment})
}

func testCommentTexts(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	r, _ := w.addResponse(&c)
	var want []formsvc.Comment
	for _, text := range append(texts(), strings.Repeat("𝕏", formsvc.MaxComment)) {
		comment := w.newComment(&r)
		comment.Body, comment.Author = text, "x"+text
		w.must("CreateComment", w.createComment(comment))
		want = append(want, comment)
	}
	w.same("comments", w.comments(&r), want)
}

func testRefusedComments(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	create := func(set func(*formsvc.Comment)) error {
		c := w.newComment(&r)
		set(&c)
		return w.createComment(c, w.newEvent(&r))
	}
	w.refuses(map[string]func(string) error{
		"CreateComment: body":   func(s string) error { return create(func(c *formsvc.Comment) { c.Body = s }) },
		"CreateComment: author": func(s string) error { return create(func(c *formsvc.Comment) { c.Author = s }) },
		"CreateComment: event type": func(s string) error {
			e := w.newEvent(&r)
			e.Type = formsvc.EventType(s)
			return w.createComment(w.newComment(&r), w.newEvent(&r), e)
		},
	})
}

func testCommentTaken(w *world) {
	mine, others := w.addScene(), w.addScene()
	r, _ := w.addResponse(&mine.campaign)
	second, _ := w.addResponse(&mine.campaign)
	third, _ := w.addResponse(&others.campaign)
	taken := w.addComment(&r)
	before := w.snapshot()
	for _, r := range []*formsvc.Response{&r, &second, &third} {
		c, e := w.newComment(r), w.newEvent(r)
		c.ID = taken.ID
		w.wantError("CreateComment with a taken ID", w.createComment(c, e), formsvc.ErrConflict)
		w.noEvents("CreateComment with a taken ID", e)
	}
	w.unchanged("CreateComment with a taken ID", &before)
}

// newRecord returns an account's idempotency record for a key.
func (w *world) newRecord(account formsvc.ID, key string) *formsvc.IdempotencyRecord {
	_, at := w.next()
	return &formsvc.IdempotencyRecord{
		AccountID: account, Key: key, Reply: formsvc.Reply{Status: 201, Body: []byte("{}")}, CreatedAt: at,
	}
}

// wantRecalled fails the test unless the record is stored, or isn't, depending on want.
func (w *world) wantRecalled(what string, record *formsvc.IdempotencyRecord, want error) {
	w.Helper()
	got, err := w.store.Recall(w.ctx, record.AccountID, record.Key, time.Unix(0, 0))
	w.wantError(what+": Recall", err, want)
	if err == nil {
		w.same(what+": record", got, *record)
	}
}

func testCommentChange(w *world) {
	sc := w.addScene()
	r, first := w.addResponse(&sc.campaign)
	c, events := w.newComment(&r), w.eventsOfAllTypes(&r)
	record := w.newRecord(sc.account.ID, "k")
	w.must("CreateComment", w.store.CreateComment(w.ctx, c, formsvc.Change{Events: events, Idempotency: record}))
	w.same("comments", w.comments(&r), []formsvc.Comment{c})
	w.wantHeard([]formsvc.Webhook{sc.hook}, append(events, first))
	w.wantRecalled("CreateComment", record, nil)
}

func testCommentRepeated(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	taken := w.addComment(&r)
	record := w.newRecord(sc.account.ID, "k")
	w.must("Remember", remember(w.ctx, w.store, *record))
	before := w.snapshot()
	for _, id := range []formsvc.ID{w.nextID(), taken.ID} { // a taken key takes precedence over other errors
		c, e := w.newComment(&r), w.newEvent(&r)
		c.ID = id
		change := formsvc.Change{Events: []formsvc.Event{e}, Idempotency: w.newRecord(sc.account.ID, "k")}
		w.wantError("CreateComment, again", w.store.CreateComment(w.ctx, c, change), formsvc.ErrRepeated)
		w.noEvents("CreateComment, again", e)
	}
	w.unchanged("CreateComment, again", &before)
	w.wantRecalled("CreateComment, again", record, nil)
}

func testCommentOfNothing(w *world) {
	sc, other := w.addScene(), w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	before := w.snapshot()
	for _, account := range []formsvc.ID{sc.account.ID, other.account.ID} {
		c, e, record := w.newComment(&r), w.newEvent(&r), w.newRecord(account, "k")
		if c.AccountID = account; account == sc.account.ID {
			c.ResponseID = w.nextID()
		}
		change := formsvc.Change{Events: []formsvc.Event{e}, Idempotency: record}
		w.wantError("CreateComment", w.store.CreateComment(w.ctx, c, change), formsvc.ErrNotFound)
		w.noEvents("CreateComment that found no response", e)
		w.wantRecalled("CreateComment that found no response", record, formsvc.ErrNotFound)
	}
	w.unchanged("CreateComment that found no response", &before)
}

// testDeletedComments creates a response again with a deleted one's identifier. It must have no comment of the deleted
// one.
func testDeletedComments(w *world) {
	sc := w.addScene()
	second := w.addCampaign(sc.account.ID)
	r, _ := w.addResponse(&sc.campaign)
	neighbour, _ := w.addResponse(&sc.campaign)
	elsewhere, _ := w.addResponse(&second)
	gone := []formsvc.Comment{w.addComment(&r), w.addComment(&r)}
	kept, distant := w.addComment(&neighbour), w.addComment(&elsewhere)
	_, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
	w.must("DeleteResponse", err)
	_, err = w.store.Comments(w.ctx, formsvc.CommentQuery{AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID})
	w.wantError("Comments of what was deleted", err, formsvc.ErrNotFound)
	w.wantError("CreateComment on what was deleted", w.createComment(w.newComment(&r)), formsvc.ErrNotFound)
	w.same("comments of a neighbour", w.comments(&neighbour), []formsvc.Comment{kept})
	w.same("comments in another campaign", w.comments(&elsewhere), []formsvc.Comment{distant})
	if w.create(r) == nil {
		w.same("comments on a response with the ID of a deleted one", w.comments(&r), []formsvc.Comment{})
		w.must("CreateComment with the ID of one that went", w.createComment(gone[0]))
	}
}

// testNoStrayComments adds comments to a response that is being deleted.
func testNoStrayComments(w *world) {
	w.besideDeletion(func(r *formsvc.Response) error {
		return w.createComment(w.newComment(r), w.newEvent(r))
	}, func(r *formsvc.Response) int { return len(w.comments(r)) })
}

// besideDeletion creates records of responses that are being deleted concurrently: creating must fail, or the deletion
// must remove the record too. left returns how many records a response has.
func (w *world) besideDeletion(create func(*formsvc.Response) error, left func(*formsvc.Response) int) {
	w.Helper()
	sc := w.addScene()
	for range 10 {
		r, _ := w.addResponse(&sc.campaign)
		before := len(w.deliveries(&sc.hook))
		const n = 8
		made := make([]error, n)
		w.together(n+1, func(i int) {
			if i < n {
				made[i] = create(&r)
				return
			}
			_, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
			w.check("DeleteResponse", err)
		})
		events := 0
		for _, err := range made {
			if err == nil {
				events++
			} else {
				w.wantError("beside DeleteResponse", err, formsvc.ErrNotFound)
			}
		}
		if got := len(w.deliveries(&sc.hook)) - before; got != events {
			w.Errorf("%d deliveries of %d that were made", got, events)
		}
		if w.create(r) == nil && left(&r) != 0 {
			w.Errorf("a deleted response left something behind")
		}
	}
}
