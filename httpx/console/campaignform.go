package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of a campaign that the pages edit: beyond them a form would be too large. The API has none of them.
const (
	maxQuestions = 60
	maxEdited    = 100 << 10 // bytes in memory
)

// A campaignForm is the form of a new or existing campaign. Its buttons for questions only show it again, so that it
// works without a script; what is typed is saved with all the rest.
type campaignForm struct {
	formsvc.CampaignInput

	ID            formsvc.ID // "" for a new campaign
	Opens, Closes string     // the times as typed
	Most          string     // how many responses it takes, as typed
	Focus         int        // the number of the question that was just added, from 1; 0 for none
	Open          int        // the number of the question in work, from 1; 0 for none
	Said          string     // what a button for questions did, for screen readers
	Removed       string     // the question that was just removed, for undoing it; "" for none
	Problem       string     // an error of the whole form
	Losses        []string   // what saving would lose
	Confirm       string     // what the form must send to save with these losses
	Dirty         bool       // whether something isn't saved
	Note          string     // what a start, or a list, did
	List          string     // a list of questions that can't be read, as typed
	File          string     // what a new campaign began with, and has more of than the page shows; see [visit.opened]
	Previews      bool
	Differences   []difference // to the campaign that somebody else saved

	renamed  map[int]map[string]string // the values of choices that were renamed, by the question
	faulty   []int                     // the questions with errors
	places   []int                     // where each question of the page is now; nil for its own place
	stored   []string                  // the name of each question in the stored campaign, "" for a new one
	answered map[string]int            // names that have answers; they aren't given to new questions
}

// newCampaign shows an empty form.
func (v *visit) newCampaign() error { return v.showCampaignForm(http.StatusOK, emptyForm("")) }

func emptyForm(list string) campaignForm {
	f := campaignForm{List: list, Open: 1, stored: []string{""}}
	f.Modules = []formsvc.Module{{Type: formsvc.TextModule}}
	return f
}

// editCampaign shows a campaign for editing.
func (v *visit) editCampaign() error {
	if err := editable(&v.campaign); err != nil {
		return err
	}
	return v.showCampaignForm(http.StatusOK, v.formOf(&v.campaign))
}

// editable returns why the page can't show a campaign, or nil.
func editable(c *formsvc.Campaign) error {
	if len(c.Modules) > maxQuestions || c.Size() > maxEdited {
		return &refusal{http.StatusConflict, "This campaign is too large for this page", fmt.Sprintf("It has more than %d questions, or long texts. Change it over the API.", maxQuestions)}
	}
	if unlisted(c) {
		return &refusal{http.StatusConflict, "This page can't show all choices of this campaign", "One is empty, or has a line break. Change it over the API."}
	}
	return nil
}

// formOf returns the form of a campaign, or of a new one that isn't stored yet.
func (v *visit) formOf(c *formsvc.Campaign) campaignForm {
	f := campaignForm{CampaignInput: c.CampaignInput, ID: c.ID, Opens: typedIn(c.OpensAt, v.zoneFor(&c.CampaignInput)), Closes: typedIn(c.ClosesAt, v.zoneFor(&c.CampaignInput))}
	f.IfVersion = c.Version
	if c.Form.MaxResponses > 0 {
		f.Most = strconv.Itoa(c.Form.MaxResponses)
	}
	for _, m := range c.Modules {
		f.stored = append(f.stored, m.Name)
	}
	return f
}

func (v *visit) showCampaignForm(status int, f campaignForm) error {
	f.Previews = v.h.opts.Preview != nil
	f.markConditions(v)
	for place := range v.wrong {
		var i int
		if n, _ := fmt.Sscanf(place, "modules.%d.", &i); n == 1 {
			f.faulty = append(f.faulty, i)
		}
	}
	title := map[bool]string{true: "New campaign", false: "Edit campaign"}[f.ID == ""]
	return v.show(status, "campaign-form", title, f)
}

// readCampaignForm reads the form, and gives a name to each question that has a label. The rest of a stored campaign
// stays as it is. A time that can't be read is an error of its field.
func (v *visit) readCampaignForm() campaignForm {
	start, err := v.opened([]byte(v.r.PostForm.Get("file")))
	if err == nil && v.campaign.ID == "" {
		v.campaign.CampaignInput = start.CampaignInput
	}
	f := campaignForm{CampaignInput: v.campaign.CampaignInput, ID: v.campaign.ID, File: start.File, Opens: v.field("opensAt"), Closes: v.field("closesAt"), renamed: map[int]map[string]string{}}
	f.Title, f.Description, f.EmailOptional = asStored(v.field("title"), f.Title), textAsStored(v.field("description"), f.Description), v.field("requireEmail") == ""
	f.RequireName, f.Form.HideName = v.field("askName") == "required", v.field("askName") == "no"
	f.IfVersion, _ = strconv.ParseInt(v.field("version"), 10, 64)
	f.Open, _ = strconv.Atoi(v.field("open"))
	f.Modules, f.Dirty, v.wrong = nil, true, map[string]string{}
	n, _ := strconv.Atoi(v.field("n"))
	for i := range min(n, maxQuestions) {
		f.Modules = append(f.Modules, v.readQuestion(&f, i))
	}
	for i := range f.Modules {
		if m := &f.Modules[i]; m.Name == "" && (m.Label != "" || m.Type == formsvc.SectionModule) {
			if f.answered == nil {
				f.answered, _, _ = v.readAnswered() // without it, a name may be one of an old question
			}
			m.Name = f.freeName(cmp.Or(m.Label, string(m.Type)))
		}
	}
	f.followRenames(v)
	f.followPrefill(v.campaign.Modules)
	f.order(v)
	f.readLimits(v)
	return f
}

// lines returns the lines of a text that aren't empty.
func lines(text string) (list []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// saveCampaign creates or changes a campaign, or does what a button for questions says.
func (v *visit) saveCampaign() error {
	f := v.readCampaignForm()
	switch do := v.field("do"); {
	case do == "preview" && v.h.opts.Preview != nil:
		if v.r.Header.Get("Sec-Fetch-Dest") == "empty" { // of our script, into a frame that our policy holds for, too
			f.Form.Theme.Logo, f.Form.Theme.Cover = nil, nil
		}
		return v.preview(&f)
	case do == "paste":
		v.paste(&f, v.r.PostForm.Get("list"))
		return v.showCampaignForm(http.StatusOK, f)
	case do != "" && do != "save":
		f.arrange(do, v.field("newType"), v.r.PostForm.Get("removed"))
		return v.showCampaignForm(http.StatusOK, f)
	case len(v.wrong) > 0:
		return v.showCampaignForm(http.StatusUnprocessableEntity, f)
	}
	if asks, err := v.confirms(&f); asks || err != nil {
		return cmp.Or(err, v.showCampaignForm(http.StatusConflict, f))
	}
	var saved formsvc.Campaign
	var err error
	if f.ID == "" {
		saved, _, err = once(v, func(svc *formsvc.Service) (formsvc.Campaign, error) {
			return svc.Campaigns.Create(v.ctx(), v.account(), f.CampaignInput)
		})
	} else {
		saved, err = v.svc.Campaigns.Replace(v.ctx(), v.campaign.Key(), f.CampaignInput)
	}
	switch {
	case v.invalid(err):
		return v.showCampaignForm(http.StatusUnprocessableEntity, f)
	case errors.Is(err, formsvc.ErrLimit):
		f.Problem = "This account has reached its limit of campaigns. Delete one first."
		return v.showCampaignForm(http.StatusConflict, f)
	case errors.Is(err, formsvc.ErrStale):
		f.IfVersion, f.Differences = v.campaign.Version, v.differences(&f)
		f.Problem = "Someone else changed this campaign since you opened it. Compare both below. Saving again replaces theirs by yours."
		if len(f.Differences) == 0 {
			f.Problem = "Someone else changed settings of this campaign that aren't on this page. They are kept. Save again."
		}
		return v.showCampaignForm(http.StatusConflict, f)
	case err != nil:
		return err
	case f.ID == "":
		return v.done(nil, "/campaigns/"+string(saved.ID)+"/share", "campaign-created")
	}
	return v.done(nil, "/campaigns/"+string(saved.ID), "campaign-saved")
}

// preview shows the form that visitors would get, or what is wrong with it. It leaves out questions that have no text yet.
func (v *visit) preview(f *campaignForm) error {
	f.Title = cmp.Or(f.Title, "Untitled")
	f.Modules = slices.DeleteFunc(f.Modules, func(m formsvc.Module) bool { return m.Name == "" })
	if len(v.wrong) == 0 && !v.invalid(v.svc.Campaigns.Check(f.CampaignInput)) {
		v.h.opts.Preview(v.w, v.r, &formsvc.Campaign{ID: f.ID, AccountID: v.account(), CampaignInput: f.CampaignInput})
		return nil
	}
	var wrong []string
	for _, place := range slices.Sorted(maps.Keys(v.wrong)) {
		name := place
		var i int
		var field string
		if n, _ := fmt.Sscanf(place, "modules.%d.%s", &i, &field); n == 2 && i < len(f.Modules) {
			name = "“" + short(60, cmp.Or(f.Modules[i].Label, f.Modules[i].Name)) + "”, " + field
		}
		wrong = append(wrong, name+": "+v.wrong[place]+".")
	}
	v.who = nil // no menu
	return v.show(http.StatusOK, "refused", "No preview yet", refusedPage{Detail: strings.Join(wrong, " ")})
}

// A removedQuestion is what undoes a removal.
type removedQuestion struct {
	At     int
	Stored string // its name in the stored campaign
	Module formsvc.Module
}

// arrange changes the list of questions: do is "add", or "insert" with the number of the question before and a type, or "copy", "up", "down",
// "remove" or "stay" with the question's number, or "undo" for the removed one.
func (f *campaignForm) arrange(do, newType, removed string) {
	what, number, _ := strings.Cut(do, ".")
	number, kind, _ := strings.Cut(number, ".")
	i, err := strconv.Atoi(number)
	inRange := err == nil && i >= 0 && i < len(f.Modules)
	if inRange && i < len(f.places) {
		i = f.places[i]
	}
	insert := func(i int, m formsvc.Module, stored string) {
		if len(f.Modules) >= maxQuestions {
			f.Problem = fmt.Sprintf("A campaign can have %d questions here, and more over the API.", maxQuestions)
			return
		}
		f.Modules, f.stored, f.Focus, f.Open = slices.Insert(f.Modules, i, m), slices.Insert(f.stored, i, stored), i+1, 0
	}
	var m formsvc.Module
	switch {
	case what == "add":
		setType(&m, cmp.Or(number, newType, "text"))
		insert(len(f.Modules), m, "")
	case what == "insert" && inRange:
		setType(&m, cmp.Or(kind, "text"))
		insert(i+1, m, "")
	case what == "copy" && inRange:
		m = f.Modules[i]
		m.Name = f.freeName(m.Label)
		insert(i+1, m, "")
	case what == "remove" && inRange:
		text, _ := json.Marshal(removedQuestion{i, f.stored[i], f.Modules[i]}) // has no value that JSON lacks
		f.Removed = string(text)
		f.Modules, f.stored, f.Open = slices.Delete(f.Modules, i, i+1), slices.Delete(f.stored, i, i+1), 0
	case what == "undo":
		var r removedQuestion
		if json.Unmarshal([]byte(removed), &r) == nil && r.At >= 0 {
			insert(min(r.At, len(f.Modules)), r.Module, r.Stored)
		}
	case what == "up" && inRange:
		f.move(i, i-1)
	case what == "down" && inRange:
		f.move(i, i+1)
	case what == "stay" && inRange:
		f.Open = i + 1
	}
}

// move moves a question to another place, or as far as it can.
func (f *campaignForm) move(from, to int) {
	to = min(max(to, 0), len(f.Modules)-1)
	m, stored := f.Modules[from], f.stored[from]
	f.Modules = slices.Insert(slices.Delete(f.Modules, from, from+1), to, m)
	f.stored = slices.Insert(slices.Delete(f.stored, from, from+1), to, stored)
	f.Open = to + 1
	f.Said = fmt.Sprintf("“%s” is question %d of %d.", short(60, cmp.Or(m.Label, "New question")), f.Open, len(f.Modules))
}

// order puts the questions at the places that were typed. Of two that want one place, the one that was moved there comes first if it was
// moved up, and last otherwise.
func (f *campaignForm) order(v *visit) {
	n, open := len(f.Modules), f.Open
	keys, from := make([]int, n), make([]int, n)
	for i := range n {
		text := v.field("position." + strconv.Itoa(i))
		to, err := strconv.Atoi(text)
		if to = min(max(to, 1), n); err != nil {
			to = i + 1
		}
		keys[i], from[i] = 2*to+cmp.Compare(to, i+1), i
		if err != nil && text != "" {
			v.wrong[fmt.Sprintf("modules.%d.position", i)] = fmt.Sprintf("“%s” is no place in the list.", short(20, text))
		}
	}
	slices.SortStableFunc(from, func(a, b int) int { return keys[a] - keys[b] })
	modules, stored := slices.Clone(f.Modules), slices.Clone(f.stored)
	f.places = make([]int, n)
	for place, i := range from {
		f.Modules[place], f.stored[place], f.places[i] = modules[i], stored[i], place
		if open == i+1 {
			f.Open = place + 1
		}
	}
	if !slices.IsSorted(from) {
		f.Said = "The questions have a new order."
	}
}
