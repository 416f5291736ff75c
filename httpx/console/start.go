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

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/client"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

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
