package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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
	ID                 formsvc.ID // "" for a new campaign
	Title, Description string
	OpensAt, ClosesAt  string // as typed
	EmailOptional      bool
	Questions          []question
	Version            int64
	Problem            string // an error of the whole form
	Previews           bool
}

// A question is a module as it is edited.
type question struct {
	Name, Label, Type, Help, Placeholder string
	MaxLength                            string
	Options                              string // one a line
	Required, Multiple                   bool
	ShowModule, ShowValues               string     // the condition; the values one a line
	Earlier                              []question // those that the condition can name
	New                                  bool       // whether it was just added
}

// A questionType is a choice of the form.
type questionType struct{ Type, Text string }

// QuestionTypes returns the types in the order of the form, for the template.
func (f campaignForm) QuestionTypes() []questionType {
	return []questionType{
		{"text", "Short text"}, {"longtext", "Long text"}, {"choice", "Choice"}, {"boolean", "Yes or no"}, {"number", "Number"},
		{"date", "Date"}, {"email", "E-mail address"}, {"url", "Web address"}, {"file", "File"},
	}
}

// Is reports whether the question has one of the types, for the template.
func (q question) Is(types ...string) bool { return slices.Contains(types, q.Type) }

// typed is the format of times in the form, in UTC.
const typed = "2006-01-02T15:04"

func typedTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(typed)
}

func newCampaignForm(c *formsvc.Campaign) campaignForm {
	f := campaignForm{
		ID: c.ID, Title: c.Title, Description: c.Description, OpensAt: typedTime(c.OpensAt), ClosesAt: typedTime(c.ClosesAt),
		EmailOptional: c.EmailOptional, Version: c.Version,
	}
	for _, m := range c.Modules {
		q := question{
			Name: m.Name, Label: m.Label, Type: string(m.Type), Help: m.Help, Placeholder: m.Placeholder,
			Options: strings.Join(m.Options, "\n"), Required: m.Required, Multiple: m.Multiple,
		}
		if m.MaxLength > 0 {
			q.MaxLength = strconv.Itoa(m.MaxLength)
		}
		if m.ShowIf != nil {
			q.ShowModule, q.ShowValues = m.ShowIf.Module, strings.Join(m.ShowIf.Equals, "\n")
		}
		f.Questions = append(f.Questions, q)
	}
	return f
}

// newCampaign shows an empty form.
func (v *visit) newCampaign() error {
	return v.showCampaignForm(http.StatusOK, campaignForm{Questions: []question{{Type: "text", New: true}}})
}

// editCampaign shows a campaign for editing.
func (v *visit) editCampaign() error {
	campaign, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey())
	if err != nil {
		return err
	}
	if len(campaign.Modules) > maxQuestions || campaign.Size() > maxEdited {
		return &refusal{http.StatusConflict, "This campaign is too large for this page", fmt.Sprintf("It has more than %d questions, or long texts. Change it over the API.", maxQuestions)}
	}
	return v.showCampaignForm(http.StatusOK, newCampaignForm(&campaign))
}

func (v *visit) campaignKey() formsvc.CampaignKey {
	return formsvc.CampaignKey{AccountID: v.account(), ID: v.id("campaign")}
}

func (v *visit) showCampaignForm(status int, f campaignForm) error {
	for i := range f.Questions {
		for _, q := range f.Questions[:i] {
			if q.Name != "" && q.Type != string(formsvc.FileModule) {
				f.Questions[i].Earlier = append(f.Questions[i].Earlier, question{Name: q.Name, Label: cmp.Or(q.Label, q.Name)})
			}
		}
	}
	f.Previews = v.h.opts.Preview != nil
	title := "Edit campaign"
	if f.ID == "" {
		title = "New campaign"
	}
	return v.show(status, "campaign-form", title, f)
}

// readCampaignForm reads the form, and gives a name to each question that has a label.
func (v *visit) readCampaignForm() campaignForm {
	f := campaignForm{
		ID: v.id("campaign"), Title: v.field("title"), Description: v.field("description"),
		OpensAt: v.field("opensAt"), ClosesAt: v.field("closesAt"), EmailOptional: v.field("requireEmail") == "",
	}
	f.Version, _ = strconv.ParseInt(v.field("version"), 10, 64)
	n, _ := strconv.Atoi(v.field("n"))
	for i := range min(n, maxQuestions) {
		field := func(name string) string { return v.field(name + "." + strconv.Itoa(i)) }
		q := question{
			Name: field("name"), Label: field("label"), Type: field("type"), Help: field("help"), Placeholder: field("placeholder"),
			MaxLength: field("maxLength"), Options: field("options"), Required: field("required") != "", Multiple: field("multiple") != "",
			ShowModule: field("showModule"), ShowValues: field("showValues"),
		}
		f.Questions = append(f.Questions, q)
	}
	for i := range f.Questions {
		if q := &f.Questions[i]; q.Name == "" && q.Label != "" {
			q.Name = f.freeName(q.Label)
		}
	}
	return f
}

// freeName makes a name of a label that no other question has: its letters and digits, in lower case.
func (f *campaignForm) freeName(label string) string {
	const most = 40 // letters
	var words []string
	left := most
	for _, word := range strings.FieldsFunc(strings.ToLower(label), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if left -= len([]rune(word)) + 1; left < 0 && len(words) > 0 {
			break
		}
		words = append(words, word)
	}
	name := cmp.Or(string([]rune(strings.Join(words, "_"))[:min(most, len([]rune(strings.Join(words, "_"))))]), "question")
	for n, free := 2, name; ; n++ {
		if !slices.ContainsFunc(f.Questions, func(q question) bool { return q.Name == free }) {
			return free
		}
		free = name + "_" + strconv.Itoa(n)
	}
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

// module returns what the question says; fields that its type doesn't have are left out.
func (q *question) module() formsvc.Module {
	m := formsvc.Module{Name: q.Name, Label: q.Label, Type: formsvc.ModuleType(q.Type), Help: q.Help, Required: q.Required}
	if q.Is("text", "longtext", "email", "url") && q.MaxLength != "" {
		n, err := strconv.Atoi(q.MaxLength)
		if m.MaxLength = n; err != nil || n == 0 {
			m.MaxLength = -1 // is refused
		}
	}
	if q.Is("text", "longtext", "email", "url", "number") {
		m.Placeholder = q.Placeholder
	}
	if q.Is("choice") {
		m.Options = lines(q.Options)
	}
	if q.Is("choice", "file", "text", "email", "url") {
		m.Multiple = q.Multiple
	}
	if q.ShowModule != "" {
		m.ShowIf = &formsvc.Condition{Module: q.ShowModule, Equals: lines(q.ShowValues)}
	}
	return m
}

// input changes in as the form says. A time that can't be read is an error of its field.
func (v *visit) input(f *campaignForm, in *formsvc.CampaignInput) bool {
	in.Title, in.Description, in.EmailOptional, in.Modules = f.Title, f.Description, f.EmailOptional, nil
	in.IfVersion = f.Version
	for i := range f.Questions {
		in.Modules = append(in.Modules, f.Questions[i].module())
	}
	wrong := map[string]string{}
	for name, t := range map[string]struct {
		text string
		time *time.Time
	}{"opensAt": {f.OpensAt, &in.OpensAt}, "closesAt": {f.ClosesAt, &in.ClosesAt}} {
		if t.text == typedTime(*t.time) {
			continue // the form has no seconds
		}
		at, ok := day(t.text)
		if *t.time = at; t.text != "" && !ok {
			wrong[name] = badDay
		}
	}
	v.wrong = wrong
	return len(wrong) == 0
}

// placeInCampaign maps a pointer in the input to a field of the form, such as modules.3.options.
func placeInCampaign(pointer string) string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	return strings.Join(parts[:min(len(parts), 3)], ".")
}

// saveCampaign creates or changes a campaign, or does what a button for questions says.
func (v *visit) saveCampaign() error {
	f := v.readCampaignForm()
	do, _, _ := strings.Cut(v.field("do"), ".")
	preview := do == "preview" && v.h.opts.Preview != nil
	if do != "" && do != "save" && !preview {
		f.arrange(v.field("do"), v.field("newType"))
		return v.showCampaignForm(http.StatusOK, f)
	}
	var in formsvc.CampaignInput
	if f.ID != "" {
		campaign, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey())
		if err != nil {
			return err
		}
		in = campaign.CampaignInput
	}
	if preview {
		return v.preview(&f, in)
	}
	if !v.input(&f, &in) {
		return v.showCampaignForm(http.StatusUnprocessableEntity, f)
	}
	var saved formsvc.Campaign
	var err error
	if f.ID == "" {
		saved, err = v.once().Campaigns.Create(v.ctx(), v.account(), in)
	} else {
		saved, err = v.svc.Campaigns.Replace(v.ctx(), v.campaignKey(), in)
	}
	switch {
	case v.invalid(err, placeInCampaign):
		return v.showCampaignForm(http.StatusUnprocessableEntity, f)
	case errors.Is(err, formsvc.ErrLimit):
		f.Problem = "This account has as many campaigns as it may have. Delete one first."
		return v.showCampaignForm(http.StatusConflict, f)
	case errors.Is(err, formsvc.ErrStale):
		campaign, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey())
		if err != nil {
			return err
		}
		f.Version = campaign.Version
		f.Problem = "Someone else changed this campaign. Compare before you save again: saving overwrites their changes."
		return v.showCampaignForm(http.StatusConflict, f)
	case err != nil:
		return err
	case f.ID == "":
		return v.redirect("/campaigns/"+string(saved.ID)+"/share", url.Values{"note": {"campaign-created"}})
	}
	return v.redirect("/campaigns/"+string(saved.ID), url.Values{"note": {"campaign-saved"}})
}

// preview shows the form that visitors would get, or what is wrong with it. It leaves out questions that have no text yet.
func (v *visit) preview(f *campaignForm, in formsvc.CampaignInput) error {
	f.Title = cmp.Or(f.Title, "Untitled")
	f.Questions = slices.DeleteFunc(f.Questions, func(q question) bool { return q.Name == "" })
	ok := v.input(f, &in)
	if ok && !v.invalid(v.svc.Campaigns.Check(in), placeInCampaign) {
		v.h.opts.Preview(v.w, v.r, &formsvc.Campaign{ID: f.ID, AccountID: v.account(), CampaignInput: in})
		return nil
	}
	var wrong []string
	for _, place := range slices.Sorted(maps.Keys(v.wrong)) {
		name := place
		var i int
		var field string
		if n, _ := fmt.Sscanf(place, "modules.%d.%s", &i, &field); n == 2 && i < len(f.Questions) {
			name = "“" + short(60, cmp.Or(f.Questions[i].Label, f.Questions[i].Name)) + "”, " + field
		}
		wrong = append(wrong, name+": "+v.wrong[place]+".")
	}
	v.who = nil // no menu
	return v.show(http.StatusOK, "refused", "No preview yet", refusedPage{Detail: strings.Join(wrong, " ")})
}

// arrange adds, moves or removes a question: do is "add", or "up", "down" or "remove" with the question's number.
func (f *campaignForm) arrange(do, newType string) {
	what, number, _ := strings.Cut(do, ".")
	i, err := strconv.Atoi(number)
	inRange := err == nil && i >= 0 && i < len(f.Questions)
	switch {
	case what == "add" && len(f.Questions) < maxQuestions:
		f.Questions = append(f.Questions, question{Type: cmp.Or(newType, "text"), New: true})
	case what == "add":
		f.Problem = fmt.Sprintf("A campaign can have %d questions here, and more over the API.", maxQuestions)
	case what == "remove" && inRange:
		f.Questions = slices.Delete(f.Questions, i, i+1)
	case what == "up" && inRange && i > 0:
		f.Questions[i-1], f.Questions[i] = f.Questions[i], f.Questions[i-1]
	case what == "down" && inRange && i < len(f.Questions)-1:
		f.Questions[i+1], f.Questions[i] = f.Questions[i], f.Questions[i+1]
	}
}
