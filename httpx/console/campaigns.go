package console

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
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
