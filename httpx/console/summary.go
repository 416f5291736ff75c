package console

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of a summary. It reads the newest responses only, so that it costs the same for a campaign of any size.
const (
	summedResponses = 5_000
	summedBytes     = 8 << 20
	summedDays      = 30
	latestTexts     = 5
	shownText       = 200    // characters
	mostGroups      = 12     // of numbers and dates
	mostSummed      = 100    // questions, and choices of one
	summaryBytes    = 90_000 // of HTML for groups
	groupMarkup     = 300
)

type summaryPage struct {
	Campaign  formsvc.Campaign
	Looked    int // responses that were read
	Days      chart
	Questions []*summary
}

// A summary tells what was answered to one question.
type summary struct {
	Label    string
	Answered int
	Groups   []group  // of choices, numbers, dates
	About    string   // the range of numbers
	Texts    []string // the latest, of all other types

	module  formsvc.Module
	counts  map[string]int
	numbers []float64
}

// A group is how often something was answered.
type group struct {
	Text    string
	Count   int
	Percent int // of the responses that answer the question
}

// summary shows what was answered to each question, and when.
func (v *visit) summary() error {
	campaign, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey())
	if err != nil {
		return err
	}
	p := summaryPage{Campaign: campaign}
	byName := map[string]*summary{}
	for i := range campaign.Modules {
		if m := campaign.Modules[i]; m.Type != formsvc.FileModule && len(p.Questions) < mostSummed {
			byName[m.Name] = &summary{Label: short(shownText, cmp.Or(m.Label, m.Name)), module: m, counts: map[string]int{}}
			p.Questions = append(p.Questions, byName[m.Name])
		}
	}
	days := make([]int, summedDays)
	first := v.h.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-summedDays)
	err = v.newestResponses(func(r *formsvc.Response) error {
		p.Looked++
		if day := int(r.CreatedAt.Sub(first) / (24 * time.Hour)); !r.CreatedAt.Before(first) && day < summedDays {
			days[day]++
		}
		return r.Answers.Each(func(name string, values []string) error {
			if s := byName[name]; s != nil {
				s.add(values)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	b := &budget{left: summaryBytes}
	for _, s := range p.Questions {
		s.end(b)
	}
	p.Days = dayChart(first, days)
	return v.show(http.StatusOK, "summary", "Summary of "+campaign.Title, p)
}

// newestResponses calls see with the newest responses of the campaign.
func (v *visit) newestResponses(see func(*formsvc.Response) error) error {
	q := formsvc.ResponseQuery{AccountID: v.account(), CampaignID: v.id("campaign"), NoTotal: true}
	for left, size := summedResponses, 0; left > 0 && size < summedBytes; {
		q.Page.Limit, q.Page.MaxBytes = min(left, 500), maxPage
		list, err := v.svc.Responses.List(v.ctx(), q)
		if err != nil {
			return err
		}
		for i := range list.Items {
			size += list.Items[i].Size()
			if err := see(&list.Items[i]); err != nil {
				return err
			}
		}
		if !list.More {
			return nil
		}
		left -= len(list.Items)
		q.Page.After = list.Items[len(list.Items)-1].ID
	}
	return nil
}

// add counts an answer.
func (s *summary) add(values []string) {
	if len(values) == 0 {
		return
	}
	s.Answered++
	for _, value := range values {
		switch s.module.Type {
		case formsvc.ChoiceModule, formsvc.BooleanModule:
			s.counts[value]++
		case formsvc.DateModule:
			s.counts[value[:min(len(value), len("2006-01"))]]++
		case formsvc.NumberModule:
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				s.numbers = append(s.numbers, n)
			}
		default:
			if len(s.Texts) < latestTexts && strings.TrimSpace(value) != "" {
				s.Texts = append(s.Texts, short(shownText, value))
			}
		}
	}
}

// end makes the groups of what was counted, as far as they fit.
func (s *summary) end(b *budget) {
	var names []string
	switch s.module.Type {
	case formsvc.NumberModule:
		s.ofNumbers(b)
		return
	case formsvc.BooleanModule:
		names = []string{"true", "false"}
	case formsvc.ChoiceModule:
		names = slices.Clone(s.module.Options)
		for _, name := range slices.Sorted(maps.Keys(s.counts)) { // options that were removed
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	case formsvc.DateModule:
		names = slices.Sorted(maps.Keys(s.counts))
		names = names[max(len(names)-mostGroups, 0):]
	}
	for _, name := range names[:min(len(names), mostSummed)] {
		text := name
		if s.module.Type == formsvc.BooleanModule {
			text = map[string]string{"true": "Yes", "false": "No"}[name]
		}
		s.group(b, short(shownText, text), s.counts[name])
	}
}

func (s *summary) group(b *budget, text string, n int) {
	if b.take(groupMarkup + escaped(text)) {
		s.Groups = append(s.Groups, group{text, n, n * 100 / max(s.Answered, 1)})
	}
}

// ofNumbers makes a group of each number if there are few, otherwise ranges of the same width.
func (s *summary) ofNumbers(b *budget) {
	if len(s.numbers) == 0 {
		return
	}
	least, most, sum := slices.Min(s.numbers), slices.Max(s.numbers), 0.0
	counts := map[float64]int{}
	for _, n := range s.numbers {
		counts[n]++
		sum += n
	}
	s.About = fmt.Sprintf("From %s to %s, on average %s.", decimal(least), decimal(most), decimal(sum/float64(len(s.numbers))))
	if len(counts) <= mostGroups {
		for _, n := range slices.Sorted(maps.Keys(counts)) {
			s.group(b, decimal(n), counts[n])
		}
		return
	}
	const ranges = 8
	width := (most - least) / ranges
	if math.IsInf(width, 0) {
		return
	}
	buckets := make([]int, ranges)
	for _, n := range s.numbers {
		buckets[min(int((n-least)/width), ranges-1)]++
	}
	for i, n := range buckets {
		s.group(b, decimal(least+float64(i)*width)+" to "+decimal(least+float64(i+1)*width), n)
	}
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'g', 4, 64) }

// dayChart draws the number of responses of each day.
func dayChart(first time.Time, days []int) chart {
	var bars [][]value
	var texts []string
	sum := 0
	for i, n := range days {
		sum += n
		bars = append(bars, []value{{"neutral", float64(n)}})
		texts = append(texts, fmt.Sprintf("%s: %s", first.AddDate(0, 0, i).Format(time.DateOnly), thousands(int64(n))))
	}
	most := max(slices.Max(days), 1)
	c := newChart(fmt.Sprintf("Responses per day in the last %d days, %s in all", len(days), thousands(int64(sum))), float64(most), bars, texts)
	c.Top, c.Since = thousands(int64(most)), fmt.Sprintf("%d days", len(days))
	return c
}
