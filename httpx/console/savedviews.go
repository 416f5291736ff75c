package console

import (
	"errors"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// saveView gives the view that the visitor sees a name, with its columns, or deletes the view of that name.
func (v *visit) saveView() error {
	query, name, path := v.noted("view-saved"), v.field("name"), v.path("")
	if v.field("do") == "delete" {
		query.Set("note", "view-deleted")
		return v.redirect(v.svc.Campaigns.DeleteView(v.ctx(), v.campaign.Key(), name), path, query)
	}
	if slices.ContainsFunc(v.campaign.Views, func(w formsvc.View) bool { return w.Name == name }) {
		query.Set("note", "view-replaced")
	}
	kept := v.viewed()
	kept.Del("after")
	if !kept.Has("c") {
		kept["c"] = v.kept(columnsCookie)["c"]
	}
	err := v.svc.Campaigns.SaveView(v.ctx(), v.campaign.Key(), formsvc.View{Name: name, Query: kept.Encode()})
	switch invalid := new(formsvc.ValidationError); {
	case errors.As(err, &invalid):
		return &refusal{422, "The view wasn't saved", "Its " + place(invalid.Fields[0].Pointer) + " " + invalid.Fields[0].Detail + "."}
	case errors.Is(err, formsvc.ErrLimit):
		return &refusal{409, "The view wasn't saved", "A form can have 20 views. Delete one first."}
	}
	query["c"] = kept["c"]
	return v.redirect(err, path, query)
}

// Viewed returns the name of the view that the page shows, or "".
func (p *page) Viewed() string {
	query := p.visit.viewed()
	query.Del("after")
	i := slices.IndexFunc(p.Campaign.Views, func(w formsvc.View) bool { return w.Query == query.Encode() })
	if i < 0 {
		return ""
	}
	return p.Campaign.Views[i].Name
}
