package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of a summary.
const (
	countTime    = 300 * time.Millisecond // that one view counts for
	summedDays   = 30
	latestLooked = 100 // responses that the latest texts are from
	latestTexts  = 5
	shownLabel   = 100 // characters
	shownText    = 200
	mostGroups   = 12     // months of dates
	mostSummed   = 100    // questions, and choices of one
	summaryBytes = 80_000 // of HTML for groups and texts
	groupMarkup  = 300
)

type summaryPage struct {
	Counted   int64
	More      bool // whether there are responses to count
	At        time.Time
	Days      chart
	Questions []*summary
}

// A summary tells what was answered to one question.
type summary struct {
	Label    string
	Answered int64
	Groups   []group  // of choices, numbers, dates
	About    string   // the range of numbers, or which months are shown
	Texts    []string // the latest, of all other types
}

// A group is how often something was answered.
type group struct {
	Text    string
	Count   int64
	Percent int // of the responses that answer the question
}

// summary shows what was answered to each question, and when. Each view counts further responses until all are counted.
func (v *visit) summary() error {
	var p summaryPage
	c := v.h.counts.of(&v.campaign, false)
	until := time.Now().Add(v.h.countTime)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := v.h.now().UTC()
	first := now.Truncate(24*time.Hour).AddDate(0, 0, 1-summedDays)
	more, err := c.goOn(v.ctx(), v.svc, first, until)
	if err != nil {
		return err
	}
	p.Counted, p.More, p.At = c.n, more, now
	days := make([]int, summedDays)
	for i := range days {
		days[i] = c.days[first.AddDate(0, 0, i).Unix()]
	}
	p.Days = countChart("Responses per day", fmt.Sprint(summedDays, " days"), days, func(i int) string { return first.AddDate(0, 0, i).Format(time.DateOnly) })
	texts, err := v.latestTexts()
	if err != nil {
		return err
	}
	b := &budget{left: summaryBytes}
	for i := range v.campaign.Modules {
		m := &v.campaign.Modules[i]
		if t := c.questions[m.Name]; t != nil {
			s := &summary{Label: short(shownLabel, cmp.Or(m.Label, m.Name)), Answered: int64(t.answered)}
			s.group(b, m, t)
			for _, text := range texts[m.Name] {
				if len(s.Groups) == 0 && b.take(groupMarkup+escaped(text)) {
					s.Texts = append(s.Texts, text)
				}
			}
			p.Questions = append(p.Questions, s)
		}
	}
	return v.show(http.StatusOK, "summary", "Summary of "+v.campaign.Title, p)
}

// countAgain begins to count again.
func (v *visit) countAgain() error {
	v.h.counts.of(&v.campaign, true)
	return v.redirect("/campaigns/"+string(v.campaign.ID)+"/summary", nil)
}

// latestTexts returns the latest answers, by question. They aren't kept with the counts, so that an erased one is gone.
func (v *visit) latestTexts() (map[string][]string, error) {
	list, err := v.svc.Responses.List(v.ctx(), formsvc.ResponseQuery{
		AccountID: v.account(), CampaignID: v.campaign.ID, NoTotal: true, Page: formsvc.PageQuery{Limit: latestLooked, MaxBytes: maxPage},
	})
	texts := map[string][]string{}
	for i := range list.Items {
		_ = list.Items[i].Answers.Each(func(name string, values []string) error { // stored answers can be read
			for _, value := range values {
				if len(texts[name]) < latestTexts && strings.TrimSpace(value) != "" {
					texts[name] = append(texts[name], short(shownText, value))
				}
			}
			return nil
		})
	}
	return texts, err
}

// group makes groups of what was counted, as far as they fit.
func (s *summary) group(b *budget, m *formsvc.Module, t *tally) {
	add := func(text string, n int) {
		if b.take(groupMarkup + escaped(text)) {
			s.Groups = append(s.Groups, group{text, int64(n), int(int64(n) * 100 / max(s.Answered, 1))})
		}
	}
	var names []string
	switch m.Type {
	case formsvc.NumberModule:
		s.About = t.numbers.about()
		t.numbers.each(add)
	case formsvc.BooleanModule:
		add("Yes", t.counts["true"])
		add("No", t.counts["false"])
	case formsvc.ChoiceModule:
		for _, name := range m.Options {
			names = append(names, short(shownText, name))
		}
		for _, name := range slices.Sorted(maps.Keys(t.counts)) { // options that were removed
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	case formsvc.DateModule:
		names = slices.Sorted(maps.Keys(t.counts))
		if len(names) > mostGroups {
			names = names[len(names)-mostGroups:]
			s.About = fmt.Sprintf("Only the latest %d months with answers are shown.", mostGroups)
		}
	}
	for _, name := range names[:min(len(names), mostSummed)] {
		add(name, t.counts[name])
	}
}
