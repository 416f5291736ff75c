package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/client/api"
)

// campaigns creates, reads, changes and lists campaigns. It returns the UUID of one with the modules colour and age.
func (d *driver) campaigns(ctx context.Context) api.Uuid {
	campaign, etag := d.createCampaign(ctx)
	uuid := campaign.Uuid

	read, err := d.GetCampaignWithResponse(ctx, uuid, nil)
	d.check(read, err, http.StatusOK)
	equal("getCampaign: ETag", read.Headers200.ETag, etag)
	read, err = d.GetCampaignWithResponse(ctx, uuid, &api.GetCampaignParams{IfNoneMatch: &etag})
	d.check(read, err, http.StatusNotModified)
	equal("getCampaign: ETag", read.Headers304.ETag, etag)

	// A campaign that was read can be sent back; read-only fields are ignored.
	replacement := api.CampaignReplacement{
		Uuid: campaign.Uuid, CreatedAt: campaign.CreatedAt, UpdatedAt: campaign.UpdatedAt, ResponseCount: campaign.ResponseCount,
		Title: "Colours, once more", Modules: modules(),
	}
	replaced, err := d.ReplaceCampaignWithResponse(ctx, uuid, &api.ReplaceCampaignParams{IfMatch: &etag}, replacement)
	d.check(replaced, err, http.StatusOK)
	equal("replaceCampaign: title", replaced.JSON200.Title, replacement.Title)
	equal("replaceCampaign: description", replaced.JSON200.Description, "")
	equal("replaceCampaign: closesAt", replaced.JSON200.ClosesAt, nil)
	equal("replaceCampaign: metadata", len(replaced.JSON200.Metadata), 0)
	equal("replaceCampaign: ETag changed", replaced.Headers200.ETag != etag, true)
	replaced, err = d.ReplaceCampaignWithResponse(ctx, uuid, &api.ReplaceCampaignParams{IfMatch: &etag}, replacement)
	d.check(replaced, err, http.StatusPreconditionFailed)
	equal("replaceCampaign: code", replaced.ApplicationproblemJSON412.Code, api.PreconditionFailedProblemCodePreconditionFailed)

	d.listCampaigns(ctx, uuid)
	return uuid
}

// modules are the questions of the campaign.
func modules() *[]api.ModuleInput {
	return &[]api.ModuleInput{
		{
			Name: "colour", Label: new("Which colour?"), Type: new(api.ModuleTypeChoice),
			Options: &[]string{"red", "green"}, Required: new(true), Multiple: new(true),
		},
		{Name: "age", Type: new(api.ModuleTypeNumber)},
	}
}

// createCampaign creates a campaign with every field, twice with the same Idempotency-Key.
func (d *driver) createCampaign(ctx context.Context) (api.Campaign, string) {
	closes := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	in := api.CampaignInput{
		Title: "Colours", Description: new("Which are liked?"), Status: new(api.CampaignStatusOpen),
		OpensAt: new(closes.Add(-2 * time.Hour)), ClosesAt: &closes,
		Modules: modules(), Metadata: &map[string]string{"team": "research"},
	}
	once := &api.CreateCampaignParams{IdempotencyKey: new("colours-1")}
	created, err := d.CreateCampaignWithResponse(ctx, once, in)
	d.check(created, err, http.StatusCreated)
	campaign := created.JSON201
	equal("createCampaign: title", campaign.Title, in.Title)
	equal("createCampaign: description", campaign.Description, *in.Description)
	equal("createCampaign: status", campaign.Status, api.CampaignStatusOpen)
	equal("createCampaign: closesAt", campaign.ClosesAt.Equal(closes), true)
	equal("createCampaign: metadata", campaign.Metadata["team"], "research")
	equal("createCampaign: modules", len(campaign.Modules), 2)
	equal("createCampaign: modules/0/type", campaign.Modules[0].Type, api.ModuleTypeChoice)
	equal("createCampaign: modules/0/options", strings.Join(campaign.Modules[0].Options, " "), "red green")
	equal("createCampaign: modules/1/required", campaign.Modules[1].Required, false)
	equal("createCampaign: responseCount", campaign.ResponseCount, 0)
	equal("createCampaign: Location", strings.HasSuffix(created.Headers201.Location, "/v1/campaigns/"+campaign.Uuid.String()), true)
	equal("createCampaign: Idempotent-Replayed", created.Headers201.IdempotentReplayed, nil)

	again, err := d.CreateCampaignWithResponse(ctx, once, in)
	d.check(again, err, http.StatusCreated)
	equalTo("createCampaign: Idempotent-Replayed", again.Headers201.IdempotentReplayed, "true")
	equal("createCampaign: the repeated answer", string(again.Body), string(created.Body))
	in.Title = "Shapes"
	other, err := d.CreateCampaignWithResponse(ctx, once, in)
	d.check(other, err, http.StatusUnprocessableEntity)
	equal("createCampaign: code", other.ApplicationproblemJSON422.Code, api.InvalidPostProblemCodeIdempotencyMismatch)
	return *campaign, created.Headers201.ETag
}

// listCampaigns creates more campaigns and reads the pages of their list, oldest first; first is the oldest.
func (d *driver) listCampaigns(ctx context.Context, first api.Uuid) {
	want := []api.Uuid{first}
	for _, title := range []string{"Second", "Third", "Fourth", "Fifth"} {
		created, err := d.CreateCampaignWithResponse(ctx, nil, api.CampaignInput{Title: title})
		d.check(created, err, http.StatusCreated)
		want = append(want, created.JSON201.Uuid)
	}
	var got []api.Uuid
	params := &api.ListCampaignsParams{Limit: new(2), Order: new(api.SortOrderAsc)}
	for {
		list, err := d.ListCampaignsWithResponse(ctx, params)
		d.check(list, err, http.StatusOK)
		equal("listCampaigns: total", list.JSON200.Total, len(want))
		equal("listCampaigns: limit", list.JSON200.Limit, 2)
		for _, campaign := range list.JSON200.Items {
			got = append(got, campaign.Uuid)
		}
		if list.JSON200.NextCursor == nil {
			break
		}
		params.Cursor = list.JSON200.NextCursor
	}
	equal("listCampaigns: the campaigns, oldest first", slices.Equal(got, want), true)

	list, err := d.ListCampaignsWithResponse(ctx, &api.ListCampaignsParams{Offset: new(4)})
	d.check(list, err, http.StatusOK)
	equal("listCampaigns: offset", list.JSON200.Offset, 4)
	equal("listCampaigns: items", len(list.JSON200.Items), 1)
	equal("listCampaigns: items/0/uuid", list.JSON200.Items[0].Uuid, first)
}
