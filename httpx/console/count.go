package console

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of what is kept of counted responses.
const (
	maxCounts  = 16        // campaigns
	countBytes = 256 << 10 // of names of groups, for each campaign
	mostRanges = 30        // of numbers
)

// counts has the counts of the campaigns whose summaries were looked at last, in that order.
type counts struct {
	mu   sync.Mutex
	list []*count
}

// of returns the count of a campaign: a new one if it is to begin again, or if the campaign has changed.
func (c *counts) of(campaign *formsvc.Campaign, again bool) *count {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, func(x *count) bool { return x.key == campaign.Key() && x.version == campaign.Version })
	found := newCount(campaign)
	if i >= 0 && !again {
		found = c.list[i]
	}
	c.list = append(slices.DeleteFunc(c.list, func(x *count) bool { return x.key == found.key }), found)
	c.list = c.list[max(len(c.list)-maxCounts, 0):]
	return found
}

// A count is what was counted of a campaign's responses, from the oldest on. It keeps no text that somebody wrote.
type count struct {
	key     formsvc.CampaignKey
	version int64 // of the campaign

	mu        sync.Mutex
	n         int64
	last      formsvc.ID    // the last response that was counted
	days      map[int64]int // responses of a day, by its beginning in Unix time
	questions map[string]*tally
	left      int // bytes for names of groups
}

// A tally is what was answered to one question.
type tally struct {
	kind     formsvc.ModuleType
	answered int
	counts   map[string]int // choices, and months of dates
	numbers  numbers
}

func newCount(c *formsvc.Campaign) *count {
	n := &count{key: c.Key(), version: c.Version, days: map[int64]int{}, questions: map[string]*tally{}, left: countBytes}
	for i := range c.Modules {
		if m := &c.Modules[i]; m.Type != formsvc.FileModule && len(n.questions) < mostSummed {
			n.questions[m.Name] = &tally{kind: m.Type, counts: map[string]int{}, numbers: numbers{counts: map[float64]int{}}}
		}
	}
	return n
}

// goOn counts further responses until a time, but at least one page of them. It counts the days from first on, and
// reports whether there are more responses.
func (c *count) goOn(ctx context.Context, svc *formsvc.Service, first, until time.Time) (more bool, err error) {
	for {
		list, err := svc.Responses.List(ctx, formsvc.ResponseQuery{
			AccountID: c.key.AccountID, CampaignID: c.key.ID, NoTotal: true,
			Page: formsvc.PageQuery{Limit: formsvc.MaxLimit, MaxBytes: maxPage, After: c.last, Ascending: true},
		})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			r := &list.Items[i]
			c.n, c.last = c.n+1, r.ID
			if !r.CreatedAt.Before(first) {
				c.days[r.CreatedAt.Truncate(24*time.Hour).Unix()]++
			}
			if err := r.Answers.Each(c.add); err != nil {
				return false, err
			}
		}
		if !list.More || !time.Now().Before(until) {
			return list.More, nil
		}
	}
}

// add counts an answer.
func (c *count) add(name string, values []string) error {
	t := c.questions[name]
	if t == nil || len(values) == 0 {
		return nil
	}
	t.answered++
	for _, value := range values {
		switch t.kind {
		case formsvc.NumberModule:
			if n, err := strconv.ParseFloat(value, 64); err == nil && math.Abs(n) < 1e300 {
				t.numbers.add(n)
			}
			continue
		case formsvc.DateModule:
			value = value[:min(len(value), len("2006-01"))]
		case formsvc.ChoiceModule, formsvc.BooleanModule:
			value = short(shownText, value)
		default:
			continue
		}
		if t.counts[value] == 0 {
			if len(value) > c.left {
				continue
			}
			c.left -= len(value)
		}
		t.counts[value]++
	}
	return nil
}

// numbers counts numbers: each one while few are different, then in ranges that get ten times wider until there are few.
type numbers struct {
	n                int
	least, most, sum float64
	width            float64         // of the ranges; 0: none
	counts           map[float64]int // by number, or by range: the number divided by the width, rounded down
}

func (s *numbers) add(n float64) {
	if s.n == 0 {
		s.least, s.most = n, n
	}
	s.n, s.sum, s.least, s.most = s.n+1, s.sum+n, min(s.least, n), max(s.most, n)
	if s.width > 0 {
		n = math.Floor(n / s.width)
	}
	s.counts[n]++
	for len(s.counts) > mostRanges {
		counts, factor := s.counts, 10.0
		if s.width == 0 {
			factor = math.Pow10(max(int(math.Log10((s.most-s.least)/mostRanges)), -300))
		}
		s.counts, s.width = map[float64]int{}, max(s.width, 1)*factor
		for at, n := range counts {
			s.counts[math.Floor(at/factor)] += n
		}
	}
}

// about returns the range of the numbers in words, or "" if there are none.
func (s *numbers) about() string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf("From %s to %s, on average %s.", decimal(s.least), decimal(s.most), decimal(s.sum/float64(s.n)))
}

// each calls add with every number or range in order.
func (s *numbers) each(add func(text string, n int)) {
	for _, at := range slices.Sorted(maps.Keys(s.counts)) {
		text := decimal(at)
		if s.width > 0 {
			text = decimal(at*s.width) + " to " + decimal((at+1)*s.width)
		}
		add(text, s.counts[at])
	}
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'g', 4, 64) }
