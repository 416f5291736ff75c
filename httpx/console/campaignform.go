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
	"unicode/utf8"

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
	Added         bool       // whether the last question was just added
	Problem       string     // an error of the whole form
	Previews      bool
}

// QuestionTypes returns the types in the order of the form, for the template.
func (campaignForm) QuestionTypes() []choice {
	return []choice{
		{Value: "text", Text: "Short text"}, {Value: "longtext", Text: "Long text"}, {Value: "choice", Text: "Choice"},
		{Value: "boolean", Text: "Yes or no"}, {Value: "number", Text: "Number"}, {Value: "date", Text: "Date"},
		{Value: "email", Text: "E-mail address"}, {Value: "url", Text: "Web address"}, {Value: "file", Text: "File"},
	}
}

// newCampaign shows an empty form.
func (v *visit) newCampaign() error {
	f := campaignForm{Added: true}
	f.Modules = []formsvc.Module{{Type: formsvc.TextModule}}
	return v.showCampaignForm(http.StatusOK, f)
}

// editCampaign shows a campaign for editing.
func (v *visit) editCampaign() error {
	c := &v.campaign
	if len(c.Modules) > maxQuestions || c.Size() > maxEdited {
		return &refusal{http.StatusConflict, "This campaign is too large for this page", fmt.Sprintf("It has more than %d questions, or long texts. Change it over the API.", maxQuestions)}
	}
	f := campaignForm{CampaignInput: c.CampaignInput, ID: c.ID, Opens: v.typed(c.OpensAt), Closes: v.typed(c.ClosesAt)}
	f.IfVersion = c.Version
	return v.showCampaignForm(http.StatusOK, f)
}

func (v *visit) showCampaignForm(status int, f campaignForm) error {
	f.Previews = v.h.opts.Preview != nil
	title := "Edit campaign"
	if f.ID == "" {
		title = "New campaign"
	}
	return v.show(status, "campaign-form", title, f)
}

// readCampaignForm reads the form, and gives a name to each question that has a label. The rest of a stored campaign
// stays as it is. A time that can't be read is an error of its field.
func (v *visit) readCampaignForm() campaignForm {
	f := campaignForm{CampaignInput: v.campaign.CampaignInput, ID: v.campaign.ID, Opens: v.field("opensAt"), Closes: v.field("closesAt")}
	f.Title, f.Description, f.EmailOptional = v.field("title"), v.field("description"), v.field("requireEmail") == ""
	f.IfVersion, _ = strconv.ParseInt(v.field("version"), 10, 64)
	f.Modules = nil
	n, _ := strconv.Atoi(v.field("n"))
	for i := range min(n, maxQuestions) {
		f.Modules = append(f.Modules, v.readQuestion(i))
	}
	for i := range f.Modules {
		if m := &f.Modules[i]; m.Name == "" && m.Label != "" {
			m.Name = f.freeName(m.Label)
		}
	}
	v.wrong = map[string]string{}
	for name, at := range map[string]*time.Time{"opensAt": &f.OpensAt, "closesAt": &f.ClosesAt} {
		text := v.field(name)
		if text == v.typed(*at) {
			continue // the form has no seconds
		}
		var ok bool
		if *at, ok = v.day(text); text != "" && !ok {
			v.wrong[name] = v.badDay()
		}
	}
	return f
}

// readQuestion reads a question. Fields that its type doesn't have are left out.
func (v *visit) readQuestion(i int) formsvc.Module {
	field := func(name string) string { return v.field(name + "." + strconv.Itoa(i)) }
	m := formsvc.Module{Name: field("name"), Label: field("label"), Type: formsvc.ModuleType(field("type")), Help: field("help"), Required: field("required") != ""}
	is := func(types ...formsvc.ModuleType) bool { return slices.Contains(types, m.Type) }
	if is("text", "longtext", "email", "url") && field("maxLength") != "" {
		var err error
		if m.MaxLength, err = strconv.Atoi(field("maxLength")); err != nil {
			m.MaxLength = -1 // is refused
		}
	}
	if is("text", "longtext", "email", "url", "number") {
		m.Placeholder = field("placeholder")
	}
	if is("choice") {
		m.Options = lines(field("options"))
	}
	if is("choice", "file", "text", "email", "url") {
		m.Multiple = field("multiple") != ""
	}
	if earlier := field("showModule"); earlier != "" {
		m.ShowIf = &formsvc.Condition{Module: earlier, Equals: lines(field("showValues"))}
	}
	return m
}

// freeName makes a name of a label that no other question has: its first words, in lower case.
func (f *campaignForm) freeName(label string) string {
	const most = 40 // letters, unless one word has more
	words := strings.FieldsFunc(strings.ToLower(label), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	name := cmp.Or(strings.Join(words, "_"), "question")
	for utf8.RuneCountInString(name) > most && strings.Contains(name, "_") {
		name = name[:strings.LastIndexByte(name, '_')]
	}
	for n, free := 2, name; ; n++ {
		if !slices.ContainsFunc(f.Modules, func(m formsvc.Module) bool { return m.Name == free }) {
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

// saveCampaign creates or changes a campaign, or does what a button for questions says.
func (v *visit) saveCampaign() error {
	f := v.readCampaignForm()
	switch do := v.field("do"); {
	case do == "preview" && v.h.opts.Preview != nil:
		return v.preview(&f)
	case do != "" && do != "save":
		f.arrange(do, v.field("newType"))
		return v.showCampaignForm(http.StatusOK, f)
	case len(v.wrong) > 0:
		return v.showCampaignForm(http.StatusUnprocessableEntity, f)
	}
	var saved formsvc.Campaign
	var err error
	if f.ID == "" {
		saved, err = v.once().Campaigns.Create(v.ctx(), v.account(), f.CampaignInput)
	} else {
		saved, err = v.svc.Campaigns.Replace(v.ctx(), v.campaign.Key(), f.CampaignInput)
	}
	switch {
	case v.invalid(err):
		return v.showCampaignForm(http.StatusUnprocessableEntity, f)
	case errors.Is(err, formsvc.ErrLimit):
		f.Problem = "This account has as many campaigns as it may have. Delete one first."
		return v.showCampaignForm(http.StatusConflict, f)
	case errors.Is(err, formsvc.ErrStale):
		f.IfVersion = v.campaign.Version
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

// arrange adds, moves or removes a question: do is "add", or "up", "down" or "remove" with the question's number.
func (f *campaignForm) arrange(do, newType string) {
	what, number, _ := strings.Cut(do, ".")
	i, err := strconv.Atoi(number)
	inRange := err == nil && i >= 0 && i < len(f.Modules)
	switch {
	case what == "add" && len(f.Modules) < maxQuestions:
		f.Modules = append(f.Modules, formsvc.Module{Type: formsvc.ModuleType(cmp.Or(newType, "text"))})
		f.Added = true
	case what == "add":
		f.Problem = fmt.Sprintf("A campaign can have %d questions here, and more over the API.", maxQuestions)
	case what == "remove" && inRange:
		f.Modules = slices.Delete(f.Modules, i, i+1)
	case what == "up" && inRange && i > 0:
		f.Modules[i-1], f.Modules[i] = f.Modules[i], f.Modules[i-1]
	case what == "down" && inRange && i < len(f.Modules)-1:
		f.Modules[i+1], f.Modules[i] = f.Modules[i], f.Modules[i+1]
	}
}
