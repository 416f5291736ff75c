package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of what is kept of counted responses.
const (
	maxCounts     = 64     // campaigns, or comparisons
	accountCounts = 8      // of one account
	keptOfOne     = 4_000  // numbers or dates of a question, of each group; wider ranges are used when there are more
	keptOfAll     = 40_000 // of all questions
)

// counts has the counts of the campaigns whose summaries were looked at last, the last one first.
type counts struct {
	mu   sync.Mutex
	list []*count
}

// A countKey is a campaign as it is counted.
type countKey struct {
	formsvc.CampaignKey

	version  int64
	zone, by string // by is the question whose answers are compared
}

// of returns the count with the key of fresh, or fresh itself if there is none, or if that one is of all responses and these changed since.
func (c *counts) of(fresh *count, again bool) *count {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := 1
	c.list = slices.DeleteFunc(c.list, func(x *count) bool {
		if x.countKey == fresh.countKey {
			if !again && (x.mark == fresh.mark || !x.all.Load()) {
				fresh = x
			}
			return true
		}
		if x.AccountID == fresh.AccountID {
			mine++
		}
		return x.AccountID == fresh.AccountID && mine > accountCounts
	})
	c.list = slices.Insert(c.list[:min(len(c.list), maxCounts-1)], 0, fresh)
	return fresh
}

// A count is what was counted of a campaign's responses, from the oldest on. It keeps no text that somebody wrote.
type count struct {
	countKey
	mark string      // changes with the responses
	all  atomic.Bool // whether all were counted

	mu        sync.Mutex
	last      formsvc.ID // the last response that was counted
	sent      *tally     // the days of the responses, and how many there are in each group
	questions map[string]*tally
	files     bool             // whether there are questions for files
	old       map[string]int64 // answers to removed questions
	names     [groups]string   // of the groups that are compared
	groups    map[string]int   // by the answer that their responses have
	in        []int            // the groups of a response
}

// newCount returns a count without responses. by is nil unless groups are compared.
func newCount(c *formsvc.Campaign, by *formsvc.Module, zone *time.Location, mark string) *count {
	n := &count{
		countKey: countKey{c.Key(), c.Version, zone.String(), ""}, mark: mark, sent: newTally(&formsvc.Module{}, keptOfOne),
		questions: map[string]*tally{}, old: map[string]int64{}, names: [groups]string{"All"}, groups: map[string]int{},
	}
	keep := min(keptOfOne, keptOfAll/max(min(len(c.Modules), mostSummed), 1))
	if by != nil {
		n.by, n.names[otherGroup], n.names[noGroup] = by.Name, "Others", "No answer"
		keep *= 2 // since most are counted twice
		for i, option := range by.Options[:min(len(by.Options), mostGroups)] {
			n.groups[option], n.names[i+1] = i+1, by.Shown(option)
		}
	}
	for i := range c.Modules {
		n.questions[c.Modules[i].Name] = nil
		if i < mostSummed {
			n.questions[c.Modules[i].Name] = newTally(&c.Modules[i], keep)
		}
		n.files = n.files || c.Modules[i].Type == formsvc.FileModule
	}
	return n
}

// goOn counts further responses until a time, but at least one page of them.
func (c *count) goOn(ctx context.Context, svc *formsvc.Service, zone *time.Location, until time.Time) error {
	for !c.all.Load() {
		list, err := svc.Responses.List(ctx, formsvc.ResponseQuery{
			AccountID: c.AccountID, CampaignID: c.ID, NoTotal: true, Filter: formsvc.ResponseFilter{NotStatus: formsvc.StatusSpam},
			Page: formsvc.PageQuery{Limit: formsvc.MaxLimit, MaxBytes: maxPage, After: c.last, Ascending: true},
		})
		for i := range list.Items {
			r := &list.Items[i]
			c.last = r.ID
			c.group(r)
			c.sent.addNumber(r.CreatedAt.In(zone).Format(dateDigits), c.in[:1])
			err = cmp.Or(err, r.Answers.Each(c.add), c.addFiles(ctx, svc, r))
		}
		if c.all.Store(err == nil && !list.More); err != nil || !time.Now().Before(until) {
			return err
		}
	}
	return nil
}

// group finds the groups of a response, which may be several.
func (c *count) group(r *formsvc.Response) {
	c.in = append(c.in[:0], 0)
	if c.by != "" {
		values, _ := r.Answers.Get(c.by)
		for _, value := range values {
			if group := cmp.Or(c.groups[value], otherGroup); !slices.Contains(c.in, group) {
				c.in = append(c.in, group)
			}
		}
		if len(values) == 0 {
			c.in = append(c.in, noGroup)
		}
	}
	for _, group := range c.in {
		c.sent.of[group].answered++
	}
}

// addFiles counts the files of a response.
func (c *count) addFiles(ctx context.Context, svc *formsvc.Service, r *formsvc.Response) error {
	if !c.files {
		return nil
	}
	list, err := svc.Files.List(ctx, r.Key(), formsvc.PageQuery{Limit: formsvc.MaxLimit})
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, formsvc.ErrNotFound) { // without a blob store, or deleted meanwhile
		return nil
	}
	sizes := map[string][]string{}
	for i := range list.Items {
		f := &list.Items[i]
		sizes[f.Module] = append(sizes[f.Module], strconv.FormatInt(f.Size, 10))
	}
	for name, list := range sizes {
		if t := c.questions[name]; t != nil && t.Type == formsvc.FileModule {
			t.add(list, c.in)
		}
	}
	return err
}

// add counts an answer.
func (c *count) add(name string, values []string) error {
	t, asked := c.questions[name]
	switch {
	case len(values) == 0:
	case t != nil && t.Type != formsvc.FileModule:
		t.add(values, c.in)
	case !asked && (c.old[name] > 0 || len(c.old) < mostOld):
		c.old[strings.Clone(name)]++
	}
	return nil
}
