package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	mostDays     = 31     // from the first date to the last, to show days
	mostMonths   = 24     // likewise
	mostYears    = 30     // years shown
	mostSummed   = 100    // questions, and choices of one
	summaryBytes = 80_000 // of HTML for groups and texts
	groupMarkup  = 300
)

type summaryPage struct {
	Counted   int64
	All       int64 // responses, without spam
	Spam      int64
	More      bool // whether there are responses to count
	At        time.Time
	Days      chart
	Questions []*summary
	Old       []oldQuestion
}

// An oldQuestion is one that was removed, but has answers.
type oldQuestion struct {
	Name     string
	Answered int64
	Table    string // the query of the table with its answers
}

// A summary tells what was answered to one question.
type summary struct {
	Label    string
	Answered int64
	Groups   []group  // of choices, numbers, dates
	About    string   // the range of numbers, or which dates are shown
	Texts    []string // the latest, of all other types
}

// A group is how often something was answered.
type group struct {
	Text  string
	Count int64
	Share string  // of the responses that answer the question, in percent
	Width float64 // of its bar
}

// share writes a part of a whole in percent. Only none is 0 and only all is 100.
func share(n, of int64) string {
	percent := (n*200 + of) / max(2*of, 1)
	switch {
	case percent == 0 && n > 0:
		return "<1"
	case percent == 100 && n < of:
		return ">99"
	}
	return strconv.FormatInt(percent, 10)
}

// summary shows what was answered to each question, and when. Each view counts further responses until all are counted.
func (v *visit) summary() error {
	c, p, err := v.count(false)
	if err != nil {
		return err
	}
	first := dayOf(v.h.now(), v.zone).AddDate(0, 0, 1-summedDays)
	texts, err := v.latestTexts()
	if err != nil {
		return err
	}
	c.mu.Lock() // until the page is sent to its slow reader
	err = c.goOn(v.ctx(), v.svc, first, time.Now().Add(v.h.countTime))
	p.fill(c, &v.campaign, first, texts)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, "summary", "Summary of "+v.campaign.Title, p)
}

// count returns what is counted of the campaign, and a page with the numbers of its responses.
func (v *visit) count(again bool) (*count, *summaryPage, error) {
	counts, err := v.svc.Responses.Counts(v.ctx(), v.campaign.Key())
	if err != nil {
		return nil, nil, err
	}
	events, err := v.svc.Events.Recent(v.ctx(), formsvc.RecentQuery{AccountID: v.account(), Limit: 1})
	if err != nil {
		return nil, nil, err
	}
	p := &summaryPage{Spam: counts[formsvc.StatusSpam], At: v.h.now()}
	for _, n := range counts {
		p.All += n
	}
	mark := fmt.Sprint(p.All, p.Spam) // erasures raise no events
	for i := range events {
		mark += string(events[i].ID)
	}
	p.All -= p.Spam
	return v.h.counts.of(&v.campaign, v.zone, mark, again), p, nil
}

// fill shows what was counted.
func (p *summaryPage) fill(c *count, campaign *formsvc.Campaign, first time.Time, texts map[string][]string) {
	p.Counted, p.More = c.n, !c.done.Load()
	days := make([]int, summedDays)
	for i := range days {
		days[i] = c.days[first.AddDate(0, 0, i).Unix()]
	}
	p.Days = countChart("Responses per day", fmt.Sprint(summedDays, " days"), days, func(i int) string { return first.AddDate(0, 0, i).Format(time.DateOnly) })
	b := &budget{left: summaryBytes}
	for i := range campaign.Modules {
		m := &campaign.Modules[i]
		if t := c.questions[m.Name]; t != nil {
			s := &summary{Label: short(shownLabel, cmp.Or(m.Label, m.Name)), Answered: int64(t.answered)}
			s.group(b, t)
			for _, text := range texts[m.Name] {
				if len(s.Groups) == 0 && b.take(groupMarkup+escaped(text)) {
					s.Texts = append(s.Texts, text)
				}
			}
			p.Questions = append(p.Questions, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.old)) {
		table := "?" + url.Values{"c": {columnID(name)}}.Encode()
		if name = short(shownLabel, name); b.take(groupMarkup + escaped(name, table)) {
			p.Old = append(p.Old, oldQuestion{name, int64(c.old[name]), table})
		}
	}
}

// countAgain begins to count again.
func (v *visit) countAgain() error {
	if _, _, err := v.count(true); err != nil {
		return err
	}
	return v.redirect("/campaigns/"+string(v.campaign.ID)+"/summary", nil)
}

// latestTexts returns the latest answers, by question. They aren't kept with the counts, so that an erased one is gone.
func (v *visit) latestTexts() (map[string][]string, error) {
	list, err := v.svc.Responses.List(v.ctx(), formsvc.ResponseQuery{
		AccountID: v.account(), CampaignID: v.campaign.ID, NoTotal: true, Page: formsvc.PageQuery{Limit: latestLooked, MaxBytes: maxPage},
		Filter: formsvc.ResponseFilter{NotStatus: formsvc.StatusSpam},
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
func (s *summary) group(b *budget, t *tally) {
	add := func(text string, n int) {
		text = short(shownText, text)
		if b.take(groupMarkup + escaped(text)) {
			s.Groups = append(s.Groups, group{text, int64(n), share(int64(n), s.Answered), float64(n) * 100 / float64(max(s.Answered, 1))})
		}
	}
	switch m := t.module; m.Type {
	case formsvc.FileModule:
		s.About = "Files: " + thousands(int64(t.files)) + "."
	case formsvc.NumberModule:
		s.About = t.numbers.about()
		t.numbers.each(add)
	case formsvc.DateModule:
		s.About = t.dates(add)
	case formsvc.BooleanModule:
		add("Yes", t.counts["true"])
		add("No", t.counts["false"])
		s.others(add, t)
	case formsvc.ChoiceModule:
		for _, name := range m.Options[:min(len(m.Options), mostSummed)] {
			add(name, t.counts[name])
		}
		s.others(add, t)
	}
}

// others adds the answers that the question doesn't have any more.
func (*summary) others(add func(string, int), t *tally) {
	if t.others > 0 {
		add("Others, which can't be chosen any more", t.others)
	}
}

// dates adds the dates: each day if there are few from the first to the last, otherwise months, otherwise years.
func (t *tally) dates(add func(string, int)) (about string) {
	dates, length := t.counts, t.length
	names := slices.Sorted(maps.Keys(dates))
	if len(names) == 0 {
		return ""
	}
	about = "From " + names[0] + " to " + names[len(names)-1] + "."
	if from, err := time.Parse(time.DateOnly, names[0]); err == nil {
		to, _ := time.Parse(time.DateOnly, names[len(names)-1])
		switch days := int(to.Sub(from).Hours() / 24); {
		case days >= mostDays && from.AddDate(0, mostMonths, 0).After(to):
			length = len("2006-01")
		case days >= mostDays:
			length = len("2006")
		}
	} else {
		length = len("2006")
	}
	dates = shorter(dates, length)
	names = slices.Sorted(maps.Keys(dates))
	if left := names[:max(len(names)-mostYears, 0)]; len(left) > 0 {
		n := 0
		for _, name := range left {
			n += dates[name]
		}
		add("Until "+left[len(left)-1], n)
		names = names[len(left):]
	}
	for _, name := range names {
		add(name, dates[name])
	}
	return about
}
