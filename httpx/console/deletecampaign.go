package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

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
