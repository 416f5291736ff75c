package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/mount"
)

// chartHours is how many hours the charts show.
const chartHours = 24

// maxKeysCounted is the limit of keys whose quota windows an overview reads.
const maxKeysCounted = 100

type overviewPage struct {
	Quota     quotaUse
	HasKey    bool // whether a key is active
	Hooks     []hookState
	Waiting   int64
	Failing   int
	Recent    []recent
	Campaigns int64
}

// A quotaUse is the used part of the quota.
type quotaUse struct {
	Limit  int64 // 0: no limit
	Window string
	Used   int64     // by the key or user that used most, in the current window
	By     string    // its name
	Until  time.Time // the end of the window
	Others bool      // whether there may be users that we can't count
	Chart  chart
}

// A hookState is the state of a webhook on the overview.
type hookState struct {
	Webhook  formsvc.Webhook
	Waiting  int64
	Failures int            // in the last day, as far as counted
	Of       string         // the title of its campaign, "" for all; on the list of webhooks only
	More     bool           // whether there may be more failures
	Last     formsvc.Notice // the last of these failures
}

// A recent is a recently changed response.
type recent struct {
	Event    formsvc.Event
	Response formsvc.Response
	Campaign formsvc.Campaign
}

// overview shows the state of the account.
func (v *visit) overview() error {
	p, keys, err := overviewPage{}, []formsvc.Key(nil), error(nil)
	if v.who.permits(formsvc.KeysWrite) {
		if keys, err = v.svc.Keys.List(v.ctx(), v.account()); err != nil {
			return err
		}
		p.HasKey = slices.ContainsFunc(keys, func(k formsvc.Key) bool { return keyState(&k, v.svc.Now()) == keyInForce })
	}
	quota, errQuota := v.quotaUse(keys)
	hooks, errHooks := v.hookStates()
	recent, errRecent := v.recent()
	if err = cmp.Or(errQuota, errHooks, errRecent); err != nil {
		return err
	}
	p.Quota, p.Hooks, p.Recent = quota, hooks, recent
	for _, h := range p.Hooks {
		p.Waiting += h.Waiting
		if h.Failures > 0 {
			p.Failing++
		}
	}
	if v.who.permits(formsvc.CampaignsRead) {
		list, err := v.svc.Campaigns.List(v.ctx(), formsvc.CampaignQuery{AccountID: v.account(), Page: formsvc.PageQuery{Limit: 1}})
		if err != nil {
			return err
		}
		p.Campaigns = list.Total
	}
	return v.show(http.StatusOK, "overview", "Overview", p)
}

// quotaUse counts the requests of the last day.
func (v *visit) quotaUse(keys []formsvc.Key) (quotaUse, error) {
	policy, err := v.svc.Quotas.Policy(v.ctx(), v.account())
	if err != nil {
		return quotaUse{}, err
	}
	window := map[time.Duration]string{time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day"}[policy.Window]
	u := quotaUse{Limit: int64(max(policy.Limit, 0)), Window: cmp.Or(window, policy.Window.String())}
	u.Others = !policy.PerAccount && v.h.opts.Authenticate != nil
	if policy.Limit < 0 {
		return u, nil
	}
	now := v.svc.Now()
	start := policy.Start(now)
	u.Until = start.Add(policy.Window)
	first := now.Truncate(time.Hour).Add(-(chartHours - 1) * time.Hour)
	hours := make([]int, chartHours)
	for subject, name := range v.subjects(keys, policy.PerAccount) {
		windows, err := v.svc.Quotas.Use(v.ctx(), subject, policy.Start(first))
		if err != nil {
			return u, err
		}
		for _, w := range windows {
			if i := int(w.Start.Sub(first) / time.Hour); i >= 0 && i < chartHours {
				hours[i] += w.Used
			}
			if used := int64(w.Used); w.Start.Equal(start) && name != "" && used > u.Used {
				u.Used, u.By = used, name
			}
		}
	}
	u.Chart = countChart("Requests per hour", fmt.Sprint(chartHours, " hours"), hours, func(i int) string {
		return v.clock(first.Add(time.Duration(i) * time.Hour))
	})
	return u, nil
}

// subjects returns the keys and users whose requests the overview counts, with their names; the name is "" for one that
// can't make requests any more.
func (v *visit) subjects(keys []formsvc.Key, perAccount bool) map[formsvc.ID]string {
	if perAccount {
		return map[formsvc.ID]string{v.account(): "all keys and users"}
	}
	subjects := map[formsvc.ID]string{}
	if v.h.opts.Authenticate != nil { // only the host application knows its other users
		you := formsvc.Principal{AccountID: v.account(), UserID: v.who.UserID}
		subjects[you.Subject()] = "you"
		subjects[v.account()] = "all users without a name"
	}
	for _, k := range keys[max(len(keys)-maxKeysCounted, 0):] { // only the newest keys
		subjects[k.ID] = "the key " + short(40, k.Name)
		if keyState(&k, v.svc.Now()) != keyInForce {
			subjects[k.ID] = ""
		}
	}
	return subjects
}

// noticesLooked is the limit of notices that an overview reads.
const noticesLooked = 200

// hookStates returns the state of all webhooks of the account that the visitor may see; an account has at most 50.
func (v *visit) hookStates() ([]hookState, error) {
	if v.permitted("GET /webhooks") != nil {
		return []hookState{}, nil
	}
	hooks, err := v.svc.Webhooks.List(v.ctx(), v.account())
	if err != nil {
		return nil, err
	}
	list := make([]hookState, len(hooks))
	byID := map[formsvc.ID]*hookState{}
	for i, hook := range hooks {
		list[i].Webhook = hook
		byID[hook.ID] = &list[i]
		if list[i].Waiting, err = v.svc.Deliveries.Waiting(v.ctx(), formsvc.WebhookKey{AccountID: v.account(), ID: hook.ID}); err != nil {
			return nil, err
		}
	}
	notices, err := v.svc.Notices.List(v.ctx(), formsvc.NoticeQuery{
		AccountID: v.account(), Page: formsvc.PageQuery{Limit: noticesLooked}, NoTotal: true,
	})
	if err != nil {
		return nil, err
	}
	yesterday := v.svc.Now().Add(-24 * time.Hour)
	for _, n := range notices.Items {
		state := byID[n.WebhookID]
		if state == nil || !n.At.After(yesterday) {
			continue
		}
		state.Failures++
		state.More = notices.More
		if n.At.After(state.Last.At) {
			state.Last = n
		}
	}
	return list, nil
}

// recent returns the most recently changed responses, if the visitor may see them.
func (v *visit) recent() ([]recent, error) {
	const shown, looked = 10, 50
	if v.permitted("GET /campaigns/{campaign}/responses/{response}") != nil {
		return []recent{}, nil
	}
	events, err := v.svc.Events.Recent(v.ctx(), formsvc.RecentQuery{AccountID: v.account(), Limit: looked})
	if err != nil {
		return nil, err
	}
	var list []recent
	seen := map[formsvc.ID]bool{}
	for _, e := range events {
		if seen[e.ResponseID] || len(list) == shown {
			continue
		}
		seen[e.ResponseID] = true
		r, err := v.svc.Responses.Get(v.ctx(), formsvc.ResponseKey{AccountID: v.account(), CampaignID: e.CampaignID, ID: e.ResponseID})
		campaign, missing := v.svc.Campaigns.Get(v.ctx(), formsvc.CampaignKey{AccountID: v.account(), ID: e.CampaignID})
		if err = cmp.Or(err, missing); errors.Is(err, formsvc.ErrNotFound) || r.Status == formsvc.StatusSpam {
			continue // deleted meanwhile, or held
		}
		if err != nil {
			return nil, err
		}
		list = append(list, recent{e, r, campaign})
	}
	return list, nil
}

// APIURL returns the address of the API, for commands to copy.
func (p *page) APIURL() string { return p.visit.public(p.visit.h.apiURL) }

// public returns the whole address of a path at the host of the pages.
func (v *visit) public(path *url.URL) string {
	pages := &url.URL{Scheme: "http", Host: v.r.Host}
	if v.secure() {
		pages.Scheme = "https"
	}
	if v.h.baseURL != nil {
		pages = v.h.baseURL
	}
	return mount.Whole(path, pages)
}
