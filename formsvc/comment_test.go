package formsvc_test

import (
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

func (w *world) comments(r *formsvc.Response) []formsvc.Comment {
	w.tb.Helper()
	page, err := w.svc.Comments.List(w.ctx, r.Key(), formsvc.PageQuery{Ascending: true})
	if err != nil || page.Total != int64(len(page.Items)) {
		w.tb.Fatalf("%+v, %v", page, err)
	}
	return page.Items
}

func TestCreateComment(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	must(w.svc.Campaigns.Replace(w.ctx, c.Key(), formsvc.CampaignInput{Title: "x", Status: formsvc.CampaignClosed}))
	long := " " + strings.Repeat("\U0001F600", formsvc.MaxComment-2) + "\n"
	one := must(w.svc.Comments.Create(w.ctx, r.Key(), formsvc.CommentInput{Body: long, Author: strings.Repeat("ä", 200)}))
	two := must(w.svc.Comments.Create(w.ctx, r.Key(), formsvc.CommentInput{Body: "<b>\"x\"</b>\n"}))
	want := `{"uuid":"` + string(two.ID) + `","body":"<b>\"x\"</b>\n","author":null,"createdAt":"2026-11-21T08:30:00.123Z"}`
	equal(t, string(two.AppendJSON(nil)), want, "%s")
	if after, err := w.svc.Responses.Get(w.ctx, r.Key()); err != nil || after != r {
		t.Errorf("the response is %+v, %v", after, err)
	}
	for _, x := range []struct {
		in   formsvc.CommentInput
		want []string
	}{
		{formsvc.CommentInput{Body: " \t\n\u00a0\u2003"}, []string{"/body required"}},
		{formsvc.CommentInput{Body: strings.Repeat("ä", formsvc.MaxComment+1)}, []string{"/body too_long"}},
		{formsvc.CommentInput{Body: "\xff", Author: strings.Repeat("ä", 201)}, []string{"/body invalid_utf8", "/author too_long"}},
	} {
		_, err := w.svc.Comments.Create(w.ctx, r.Key(), x.in)
		wantFaults(t, err, x.want...)
	}
	if list := w.comments(&r); len(list) != 2 || list[0] != one || list[1] != two || one.Body != long || one.CreatedAt != start() {
		t.Errorf("list %+v", list)
	}
	if events := w.events(); len(events) != 1 { // response.created
		t.Errorf("%d events", len(events))
	}
}
