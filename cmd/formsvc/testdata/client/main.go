// Command client makes a call of each kind to a running formsvc through code that oapi-codegen generates from the OpenAPI
// document that the service serves:
//
//	curl -o openapi.json $FORMSVC_URL/openapi.json
//	mkdir api && go tool oapi-codegen -config oapi-codegen.yaml openapi.json
//	FORMSVC_URL=http://127.0.0.1:8080 FORMSVC_KEY=formsvc_… go run .
//
// FORMSVC_KEY has all permissions. The service needs --webhook-allow 127.0.0.0/8. The program ends with status 1 and names the
// operation unless every call returns the status, the decoded body and the headers that the document says; package httpx compares
// them field by field.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"

	"example.com/client/api"
)

func main() {
	ctx, url := context.Background(), os.Getenv("FORMSVC_URL")
	c := newClient(url, os.Getenv("FORMSVC_KEY"))
	me, err := c.GetMeWithResponse(ctx)
	check(me, err, http.StatusOK)
	equal("getMe: X-RateLimit-Limit", *me.Headers200.XRateLimitLimit, me.JSON200.Quota.Limit)
	stranger, err := newClient(url, "not a key").ListCampaignsWithResponse(ctx, nil)
	check(stranger, err, http.StatusUnauthorized)

	options := make([]api.ModuleOption, 2)
	for i, value := range []string{"red", "green"} {
		if err := options[i].FromModuleOption0(value); err != nil {
			log.Fatal(err)
		}
	}
	in := api.CampaignInput{Title: "Colours", Modules: &[]api.ModuleInput{{Name: "colour", Type: new(api.ModuleTypeChoice), Options: &options}}}
	once := &api.CreateCampaignParams{IdempotencyKey: new("colours-1")}
	campaign, err := c.CreateCampaignWithResponse(ctx, once, in)
	check(campaign, err, http.StatusCreated)
	again, err := c.CreateCampaignWithResponse(ctx, once, in)
	check(again, err, http.StatusCreated)
	equal("createCampaign: Idempotent-Replayed", *again.Headers201.IdempotentReplayed, "true")
	id, etag := campaign.JSON201.Uuid, &campaign.Headers201.ETag
	unchanged, err := c.GetCampaignWithResponse(ctx, id, &api.GetCampaignParams{IfNoneMatch: etag})
	check(unchanged, err, http.StatusNotModified)
	for _, status := range []int{http.StatusOK, http.StatusPreconditionFailed} {
		replaced, err := c.ReplaceCampaignWithResponse(ctx, id, &api.ReplaceCampaignParams{IfMatch: etag}, api.CampaignReplacement{Title: "Shapes"})
		check(replaced, err, status)
	}
	invalid, err := c.CreateCampaignWithResponse(ctx, nil, api.CampaignInput{})
	check(invalid, err, http.StatusUnprocessableEntity)
	equal("createCampaign: errors/0/pointer", *(*invalid.ApplicationproblemJSON422.Errors)[0].Pointer, "/title")
	hook, err := c.CreateWebhookWithResponse(ctx, nil, api.WebhookInput{Url: "http://127.0.0.1:9/", Events: []api.EventName{api.EventNameResponseCompleted}})
	check(hook, err, http.StatusCreated)

	response, err := c.CreateResponseWithResponse(ctx, id, nil, api.ResponseInput{
		User: &api.RespondentInput{Email: new("ada@example.com")}, Responses: map[string]api.AnswerInput{"colour": {Value: []string{"red"}}},
	})
	check(response, err, http.StatusCreated)
	r := response.JSON201.Uuid
	updated, err := c.UpdateResponseWithResponse(ctx, id, r, nil, api.ResponsePatch{Status: new("completed")})
	check(updated, err, http.StatusOK)
	equal("updateResponse: status", updated.JSON200.Status, "completed")
	list, err := c.ListResponsesWithResponse(ctx, id, &api.ListResponsesParams{Limit: new(1)})
	check(list, err, http.StatusOK)
	equal("listResponses: items/0/uuid", list.JSON200.Items[0].Uuid, r)
	table, err := c.ExportResponsesAsCsvWithResponse(ctx, id, nil)
	check(table, err, http.StatusOK)
	equal("exportResponsesAsCsv: the response", strings.Contains(string(table.Body), r.String()), true)

	named := &api.UploadFileParams{ContentDisposition: new(`attachment; filename="list.csv"`)}
	file, err := c.UploadFileWithBodyWithResponse(ctx, id, r, named, "text/csv", strings.NewReader("one, two\n"))
	check(file, err, http.StatusCreated)
	equal("uploadFile: name", file.JSON201.Name, "list.csv")
	part, err := c.DownloadFileWithResponse(ctx, file.JSON201.Uuid, &api.DownloadFileParams{Range: new("bytes=0-2")})
	check(part, err, http.StatusPartialContent)
	equal("downloadFile: the bytes", string(part.Body), "one")
	events, err := c.ListEventsWithResponse(ctx, nil)
	check(events, err, http.StatusOK)
	equal("listEvents: items", len(events.JSON200.Items), 4)
	for _, event := range events.JSON200.Items { // as webhooks get them
		value, err := event.ValueByDiscriminator()
		equal("listEvents: a known event", value != nil && err == nil, true)
	}
	deleted, err := c.DeleteResponseWithResponse(ctx, id, r, nil)
	check(deleted, err, http.StatusNoContent)
}

// equal fails unless got equals want.
func equal[T comparable](what string, got, want T) {
	if got != want {
		log.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// check fails unless a call returned the status, and the generated type has its JSON body.
func check(answer any, err error, status int) {
	v := reflect.ValueOf(answer)
	operation := strings.TrimSuffix(v.Type().Elem().Name(), "Response")
	if err != nil {
		log.Fatalf("%s: %v", operation, err)
	}
	v = v.Elem()
	resp := v.FieldByName("HTTPResponse").Interface().(*http.Response)
	field, typed := "JSON", strings.HasSuffix(resp.Header.Get("Content-Type"), "json")
	if status >= 400 {
		field = "ApplicationproblemJSON"
	}
	body := v.FieldByName(field + strconv.Itoa(status))
	if resp.StatusCode != status || typed && (!body.IsValid() || body.IsNil()) {
		log.Fatalf("%s: status %d, want %d in %s\n%s", operation, resp.StatusCode, status, field, v.FieldByName("Body").Bytes())
	}
}

// newClient returns a generated client that sends a key.
func newClient(url, key string) *api.ClientWithResponses {
	c, err := api.NewClientWithResponses(url, api.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+key)
		return nil
	}))
	if err != nil {
		log.Fatalf("client: %v", err)
	}
	return c
}
