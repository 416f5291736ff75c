package console

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/client"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

type campaignsPage struct {
	Campaigns []formsvc.Campaign
	Total     int64
	Pager     pager
}

// campaigns lists the campaigns of the account.
func (v *visit) campaigns() error {
	list, err := v.svc.Campaigns.List(v.ctx(), formsvc.CampaignQuery{AccountID: v.account(), Page: v.page()})
	if err != nil {
		return err
	}
	for i := range list.Items {
		counts, err := v.svc.Responses.Counts(v.ctx(), list.Items[i].Key())
		if err != nil && !errors.Is(err, formsvc.ErrNotFound) { // deleted meanwhile
			return err
		}
		list.Items[i].ResponseCount -= counts[formsvc.StatusSpam]
	}
	return v.show(http.StatusOK, "campaigns", "Campaigns", campaignsPage{
		Campaigns: list.Items, Total: list.Total, Pager: pagerOf(v, list, func(c *formsvc.Campaign) formsvc.ID { return c.ID }),
	})
}

// A phase says whether a campaign takes responses now, and until or from when.
type phase struct {
	Open bool
	Word string
	At   time.Time // zero: not limited
}

// phaseOf returns the phase of a campaign.
func phaseOf(c *formsvc.Campaign, now time.Time) phase {
	switch {
	case c.Status != formsvc.CampaignOpen:
		return phase{Word: "closed"}
	case !c.ClosesAt.IsZero() && !now.Before(c.ClosesAt):
		return phase{false, "closed since", c.ClosesAt}
	case now.Before(c.OpensAt):
		return phase{false, "opens", c.OpensAt}
	case !c.ClosesAt.IsZero():
		return phase{true, "open until", c.ClosesAt}
	}
	return phase{Open: true, Word: "open"}
}

// switchCampaign opens or closes a campaign.
func (v *visit) switchCampaign() error {
	status := formsvc.CampaignStatus(v.field("status"))
	if err := v.change(v.version(), func(in *formsvc.CampaignInput) { in.Status = status }); err != nil {
		return err
	}
	note := "campaign-" + string(status)
	v.campaign.Status = status
	if status == formsvc.CampaignOpen && !phaseOf(&v.campaign, v.svc.Now()).Open {
		note = "campaign-times"
	}
	return v.done(nil, v.path(""), note)
}

// duplicateCampaign creates a campaign like another one, without its responses. Its form isn't published.
func (v *visit) duplicateCampaign() error {
	in := v.campaign.CampaignInput
	in.Title, in.Form.Enabled = short(500, "Copy of "+in.Title), false
	return v.addCampaign(in, v.campaign.Views, "/edit", "campaign-copied")
}

// sampleCampaign creates a campaign to try, with a published form.
func (v *visit) sampleCampaign() error {
	text, _ := templates.ReadFile("templates/start-contact.json") // embedded
	f, err := v.opened(text)
	if err != nil {
		return err
	}
	f.Description, f.Form.Enabled = "A sample: change it, or delete it.", true
	return v.addCampaign(f.CampaignInput, nil, "/share", "campaign-created")
}

func (v *visit) addCampaign(in formsvc.CampaignInput, views []formsvc.View, page, note string) error {
	campaign, _, err := once(v, func(svc *formsvc.Service) (formsvc.Campaign, error) {
		return svc.Campaigns.Create(v.ctx(), v.account(), in)
	})
	for _, view := range views {
		err = cmp.Or(err, v.svc.Campaigns.SaveView(v.ctx(), campaign.Key(), view))
	}
	return v.done(err, "/campaigns/"+string(campaign.ID)+page, note)
}

// deleteTime is how long one request deletes responses of a campaign.
const deleteTime = 200 * time.Millisecond

// A deletePage asks for the title of a campaign before it is deleted with its responses, or says how far that is.
type deletePage struct {
	Typed          string // title
	Going          bool
	Deleted, Total int64
}

// askDelete shows what would be deleted.
func (v *visit) askDelete() error {
	return v.show(http.StatusOK, "delete", "Delete "+v.campaign.Title, deletePage{Total: v.campaign.ResponseCount})
}

// deleteCampaign deletes a campaign, after its title was typed if it has responses. These go in steps, one a request.
func (v *visit) deleteCampaign() error {
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	typed, c := v.field("title"), &v.campaign
	confirmed := words(typed) == words(c.Title)
	if c.ResponseCount > 0 && !confirmed {
		status := http.StatusConflict
		if v.wrong = map[string]string{"title": "This campaign has responses. Enter its title to delete them too."}; typed != "" {
			status, v.wrong["title"] = http.StatusUnprocessableEntity, "That isn't the title of this campaign."
		}
		return v.show(status, "delete", "Delete "+c.Title, deletePage{Typed: typed, Total: c.ResponseCount})
	}
	total, _ := strconv.ParseInt(v.field("total"), 10, 64)
	total = max(total, c.ResponseCount)
	left, err := v.deleteResponses()
	if err == nil && left == 0 {
		if err = v.svc.Campaigns.Delete(v.ctx(), c.Key(), nil); err == nil {
			return v.done(nil, "/campaigns", "campaign-deleted")
		}
	}
	if err != nil && (!confirmed || !errors.Is(err, formsvc.ErrCampaignNotEmpty)) { // some came after it was looked at
		return err
	}
	return v.show(http.StatusOK, "delete", "Delete "+c.Title, deletePage{Typed: typed, Going: true, Deleted: total - left, Total: total})
}

// deleteResponses closes the campaign and deletes responses for deleteTime, at least one. It returns how many are left.
func (v *visit) deleteResponses() (left int64, err error) {
	c := &v.campaign
	if left = c.ResponseCount; left == 0 {
		return 0, nil
	}
	if c.Status == formsvc.CampaignOpen { // no more may arrive
		if err := v.change(c.Version, func(in *formsvc.CampaignInput) { in.Status = formsvc.CampaignClosed }); err != nil {
			return left, err
		}
	}
	w := &view{query: formsvc.ResponseQuery{AccountID: v.account(), CampaignID: c.ID, Page: formsvc.PageQuery{MaxBytes: maxPage}, NoTotal: true}}
	var done bulk
	more, err := v.changeSome(w, &done, func(id formsvc.ID) error {
		return v.svc.Responses.Delete(v.ctx(), v.responseKey(id), nil)
	})
	if !more {
		return 0, err
	}
	return max(left-done.Done(), 1), nil
}

// startCampaign shows the form of a new campaign, filled in from a list, a file, or the template that the button names. Nothing is saved.
func (v *visit) startCampaign() error {
	var f campaignForm
	if do := v.field("do"); do == "paste" {
		v.paste(&f, v.r.PostForm.Get("list"))
	} else {
		text, err := templates.ReadFile("templates/start-" + do + ".json")
		if file, _, missing := v.r.FormFile("file"); missing == nil {
			text, err = io.ReadAll(file)
		}
		if err == nil {
			f, err = v.opened(text)
		}
		if err != nil {
			v.wrong = map[string]string{"file": "Choose a form file. This one can't be opened: " + unopened(err)}
		}
		f.Note = "Filled in below. Change what you like; nothing is saved yet."
	}
	if len(v.wrong) > 0 {
		return v.showCampaignForm(http.StatusUnprocessableEntity, emptyForm(f.List))
	}
	f.Dirty = true
	return v.showCampaignForm(http.StatusOK, f)
}

// opened returns the form of a new campaign for a file of [visit.formFile], which is JSON as the API takes it.
func (v *visit) opened(text []byte) (campaignForm, error) {
	body := wire.Body{Raw: text}
	in, err := body.CampaignInput(false)
	c := formsvc.Campaign{CampaignInput: in}
	f := v.formOf(&c)
	f.File = string(text)
	return f, cmp.Or(err, v.svc.Campaigns.Check(in), editable(&c))
}

// formFile sends the form of a campaign as a file, whose own form isn't published.
func (v *visit) formFile() error {
	c := &v.campaign
	file := client.CampaignInput{
		Title: c.Title, Description: c.Description, Status: c.Status, OpensAt: c.OpensAt, ClosesAt: c.ClosesAt,
		RequireEmail: new(!c.EmailOptional), RequireName: c.RequireName, Modules: c.Modules, Metadata: c.Metadata,
		Form: client.Form{Form: c.Form}, Workflow: c.Workflow, TimeZone: c.TimeZone,
	}
	file.Form.Enabled = false
	text, err := json.Marshal(&file, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": short(100, c.Title) + ".form.json"}))
	_, _ = v.w.Write(text) // the visitor may have left
	return nil
}

// unopened says why a file can't be opened, in an owner's words.
func unopened(err error) string {
	var fields []formsvc.FieldError
	if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok {
		fields = invalid.Fields
	} else if p, ok := errors.AsType[*wire.Problem](err); ok {
		fields = append(p.Fields, formsvc.FieldError{Detail: strings.ReplaceAll(p.Detail, "body", "file")})[:1]
	} else if r, ok := errors.AsType[*refusal](err); ok {
		return r.title + ". " + r.detail
	}
	var list []string
	for _, f := range fields {
		at := strings.SplitN(strings.TrimPrefix(f.Pointer, "/"), "/", 3)
		if n, err := strconv.Atoi(at[len(at)/2]); err == nil && at[0] == "modules" {
			at = append([]string{fmt.Sprint("question ", n+1)}, at[2:]...)
		}
		list = append(list, strings.TrimPrefix(strings.Join(at, "/")+": "+f.Detail, ": "))
	}
	return strings.Join(list, ", ")
}

// paste adds the questions of a list to a form, or says why it can't.
func (v *visit) paste(f *campaignForm, text string) {
	list, free := listed(text, v.h.texts["guesses"]), maxQuestions-len(f.Modules)
	if len(list) == 0 || len(list) > free {
		f.List, v.wrong = text, map[string]string{"list": fmt.Sprintf("This list has %d questions, and must have 1 to %d. None was added.", len(list), free)}
		return
	}
	f.Focus, f.Open, f.Note = len(f.Modules)+1, 0, fmt.Sprintf("Questions read from the list: %d. Look at their types; nothing is saved yet.", len(list))
	f.Modules, f.stored = append(f.Modules, list...), append(f.stored, make([]string, len(list))...)
}

// lead is what may stand before a line of a list: space, a dash, and a number.
var lead = regexp.MustCompile(`^([\s\x{a0}]*)([-–—•*·]?)\s*(?:\d{1,3}[.)]\s+)?`)

// listed reads a list of questions, one a line. Lines below one that are further in, or have a dash, are its choices. Lines after # are headings. See [guessed].
func listed(text string, guesses map[string]string) (list []formsvc.Module) {
	outer := -1
	for line := range strings.Lines(text) {
		at := lead.FindStringSubmatch(line)
		depth, line := len(strings.ReplaceAll(at[1], "\t", "    "))+min(len(at[2]), 1), strings.TrimSpace(line[len(at[0]):])
		switch {
		case line == "":
		case strings.HasPrefix(line, "# "):
			outer, list = -1, append(list, formsvc.Module{Type: formsvc.SectionModule, Label: strings.TrimSpace(line[2:])})
		case outer >= 0 && depth > outer:
			m := &list[len(list)-1]
			m.Type = formsvc.ChoiceModule
			if own, _ := regexp.MatchString("(?i)"+guesses["other"], line); own {
				m.Other = true
			} else {
				m.Options = append(m.Options, line)
			}
		default:
			outer, list = depth, append(list, guessed(line, guesses))
		}
	}
	return list
}

// slashed is a colon with choices after it that have slashes between.
var slashed = regexp.MustCompile(`^(.*?): ([^/]*[^/\s]\s*(?:/\s*[^/\s][^/]*)+)$`)

// guessed returns the question of a line, which may end with choices and have an asterisk if it is required. Its type is that whose
// expression in guesses finds its last words.
func guessed(line string, guesses map[string]string) formsvc.Module {
	m := formsvc.Module{Type: formsvc.TextModule, Label: line}
	if of := slashed.FindStringSubmatch(strings.TrimRight(line, "* ")); of != nil {
		m.Label, m.Type = of[1], formsvc.ChoiceModule
		for option := range strings.SplitSeq(of[2], "/") {
			m.Options = append(m.Options, strings.TrimSpace(option))
		}
		if strings.EqualFold(strings.Join(m.Options, "/"), "yes/no") {
			m.Type, m.Options = formsvc.BooleanModule, nil
		}
	}
	m.Required = strings.HasSuffix(line, "*") || strings.HasSuffix(m.Label, "*")
	m.Label = strings.TrimRight(m.Label, ":* ")
	for kind := range strings.FieldsSeq("text email phone date time rating consent number url file longtext") { // the first counts
		found, _ := regexp.MatchString("(?i)"+guesses[kind], strings.TrimRight(m.Label, "?!. "))
		if found && m.Type == formsvc.TextModule {
			m.Type = formsvc.ModuleType(kind)
			break
		}
	}
	return m
}
