package main

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"example.com/client/api"
)

// problems makes requests that fail, and checks the problem details in generated types.
func (d *driver) problems(ctx context.Context, campaign api.Uuid) {
	list, err := d.ListCampaignsWithResponse(ctx, &api.ListCampaignsParams{Cursor: new("not a cursor")})
	d.check(list, err, http.StatusBadRequest)
	equal("listCampaigns: code", list.ApplicationproblemJSON400.Code, api.BadListQueryProblemCodeInvalidCursor)
	list, err = d.ListCampaignsWithResponse(ctx, &api.ListCampaignsParams{Limit: new(0)})
	d.check(list, err, http.StatusBadRequest)
	equal("listCampaigns: code", list.ApplicationproblemJSON400.Code, api.BadListQueryProblemCodeInvalidParameter)
	equalTo("listCampaigns: errors/0/parameter", given("listCampaigns: errors", list.ApplicationproblemJSON400.Errors)[0].Parameter, "limit")
	list, err = d.stranger.ListCampaignsWithResponse(ctx, nil)
	d.check(list, err, http.StatusUnauthorized)
	equal("listCampaigns: code", list.ApplicationproblemJSON401.Code, api.UnauthenticatedProblemCodeUnauthenticated)
	equal("listCampaigns: WWW-Authenticate", list.Headers401.WWWAuthenticate, "Bearer")

	responses, err := d.narrow.ListResponsesWithResponse(ctx, campaign, nil)
	d.check(responses, err, http.StatusForbidden)
	equal("listResponses: code", responses.ApplicationproblemJSON403.Code, api.PermissionDeniedProblemCodePermissionDenied)
	equalTo("listResponses: permission", responses.ApplicationproblemJSON403.Permission, api.PermissionResponsesRead)
	missing, err := d.GetCampaignWithResponse(ctx, uuid.New(), nil)
	d.check(missing, err, http.StatusNotFound)
	equal("getCampaign: code", missing.ApplicationproblemJSON404.Code, api.NotFoundProblemCodeNotFound)
	equal("getCampaign: requestId", missing.ApplicationproblemJSON404.RequestId, missing.Headers404.XRequestId)

	d.badBodies(ctx, campaign)
	d.exhaust(ctx)
}

// badBodies sends invalid bodies.
func (d *driver) badBodies(ctx context.Context, campaign api.Uuid) {
	created, err := d.CreateCampaignWithResponse(ctx, nil, api.CampaignInput{})
	d.check(created, err, http.StatusUnprocessableEntity)
	equal("createCampaign: code", created.ApplicationproblemJSON422.Code, api.InvalidPostProblemCodeValidationFailed)
	equalTo("createCampaign: errors/0/pointer", given("createCampaign: errors", created.ApplicationproblemJSON422.Errors)[0].Pointer, "/title")
	created, err = d.CreateCampaignWithBodyWithResponse(ctx, nil, "application/json", strings.NewReader(`{"title":1}`))
	d.check(created, err, http.StatusBadRequest)
	equal("createCampaign: code", created.ApplicationproblemJSON400.Code, api.BadPostProblemCodeInvalidBody)
	created, err = d.CreateCampaignWithBodyWithResponse(ctx, nil, "text/plain", strings.NewReader("title"))
	d.check(created, err, http.StatusUnsupportedMediaType)
	equal("createCampaign: code", created.ApplicationproblemJSON415.Code, api.UnsupportedMediaTypeProblemCodeUnsupportedMediaType)
	// Rejected for its length, before it is sent.
	expect := func(_ context.Context, req *http.Request) error { req.Header.Set("Expect", "100-continue"); return nil }
	created, err = d.CreateCampaignWithResponse(ctx, nil, api.CampaignInput{Title: strings.Repeat("x", 5<<20)}, expect)
	d.check(created, err, http.StatusRequestEntityTooLarge)
	equal("createCampaign: code", created.ApplicationproblemJSON413.Code, api.BodyTooLargeProblemCodeBodyTooLarge)

	closed, err := d.ReplaceCampaignWithResponse(ctx, campaign, nil, api.CampaignReplacement{
		Title: "Closed", Status: new(api.CampaignStatusClosed),
	})
	d.check(closed, err, http.StatusOK)
	equal("replaceCampaign: status", closed.JSON200.Status, api.CampaignStatusClosed)
	late, err := d.CreateResponseWithResponse(ctx, campaign, nil, api.ResponseInput{
		User: &api.RespondentInput{Email: new("ada@example.com")}, Responses: answers("red"),
	})
	d.check(late, err, http.StatusConflict)
	equal("createResponse: code", late.ApplicationproblemJSON409.Code, api.ResponseConflictProblemCodeCampaignClosed)
}

// exhaust uses up the quota of a key.
func (d *driver) exhaust(ctx context.Context) {
	me, err := d.narrow.GetMeWithResponse(ctx)
	d.check(me, err, http.StatusOK)
	// Twice, since the window may end meanwhile.
	for range 2 * me.JSON200.Quota.Limit {
		me, err = d.narrow.GetMeWithResponse(ctx)
		if err == nil && me.StatusCode() == http.StatusTooManyRequests {
			break
		}
		d.check(me, err, http.StatusOK)
	}
	d.check(me, err, http.StatusTooManyRequests)
	equal("getMe: code", me.ApplicationproblemJSON429.Code, api.TooManyRequestsProblemCodeQuotaExceeded)
	equal("getMe: Retry-After is there", me.Headers429.RetryAfter > 0, true)
	equalTo("getMe: X-RateLimit-Remaining", me.Headers429.XRateLimitRemaining, 0)
}
