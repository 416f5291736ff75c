// Command client makes a call of each kind to a running formsvc, and receives webhooks, through code that oapi-codegen
// generates from the OpenAPI document that the service serves:
//
//	curl -o openapi.json $FORMSVC_URL/openapi.json
//	mkdir api && go tool oapi-codegen -config oapi-codegen.yaml openapi.json
//	FORMSVC_URL=http://127.0.0.1:8080 FORMSVC_KEY=formsvc_… go run .
//
// FORMSVC_KEY has all permissions. The service needs --webhook-allow 127.0.0.0/8. The program prints nothing if every call
// returns the status, the decoded body and the headers that the document says; package httpx compares them field by field.
// Otherwise it names the operation and ends with status 1.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"example.com/client/api"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // only a failing run takes as long
	defer cancel()
	url := os.Getenv("FORMSVC_URL")
	c := newClient(url, os.Getenv("FORMSVC_KEY"))

	me, err := c.GetMeWithResponse(ctx)
	check(me, err, http.StatusOK)
	equal("getMe: X-RateLimit-Limit", *me.Headers200.XRateLimitLimit, me.JSON200.Quota.Limit)
	stranger, err := newClient(url, "not a key").ListCampaignsWithResponse(ctx, nil)
	check(stranger, err, http.StatusUnauthorized)

	campaign := campaigns(ctx, c)
	arrived := subscribe(ctx, c)
	response := responses(ctx, c, campaign)
	for _, want := range []api.EventType{api.EventTypeResponseCreated, api.EventTypeResponseStatusChanged, api.EventTypeResponseCompleted} {
		select {
		case event := <-arrived: // in any order
			equal("webhook: known event for "+string(want), event != nil, true)
		case <-ctx.Done():
			fail("webhook: %s did not come", want)
		}
	}
	events, err := c.ListEventsWithResponse(ctx, nil)
	check(events, err, http.StatusOK)
	equal("listEvents: items", len(events.JSON200.Items), 3)
	file(ctx, c, response)
	deleted, err := c.DeleteResponseWithResponse(ctx, campaign, response.Uuid, nil)
	check(deleted, err, http.StatusNoContent)
}

// fail prints an error and ends the program.
func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// equal fails unless got equals want.
func equal[T comparable](what string, got, want T) {
	if got != want {
		fail("%s: got %v, want %v", what, got, want)
	}
}

// check fails unless a call returned the status, and the generated type has its JSON body.
func check(answer any, err error, status int) {
	v := reflect.ValueOf(answer)
	operation := strings.TrimSuffix(v.Type().Elem().Name(), "Response")
	if err != nil {
		fail("%s: %v", operation, err)
	}
	v = v.Elem()
	resp := v.FieldByName("HTTPResponse").Interface().(*http.Response)
	field, typed := "JSON", strings.HasSuffix(resp.Header.Get("Content-Type"), "json")
	if status >= 400 {
		field = "ApplicationproblemJSON"
	}
	body := v.FieldByName(field + strconv.Itoa(status))
	if resp.StatusCode != status || typed && (!body.IsValid() || body.IsNil()) {
		fail("%s: status %d, want %d in %s\n%s", operation, resp.StatusCode, status, field, v.FieldByName("Body").Bytes())
	}
}

// newClient returns a generated client that sends a key.
func newClient(url, key string) *api.ClientWithResponses {
	c, err := api.NewClientWithResponses(url, api.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+key)
		return nil
	}))
	if err != nil {
		fail("client: %v", err)
	}
	return c
}

// campaigns creates, replaces and lists a campaign, also with each kind of error.
func campaigns(ctx context.Context, c *api.ClientWithResponses) api.Uuid {
	in := api.CampaignInput{Title: "Colours", Modules: &[]api.ModuleInput{{Name: "colour", Type: new(api.ModuleTypeChoice), Options: &[]string{"red", "green"}}}}
	once := &api.CreateCampaignParams{IdempotencyKey: new("colours-1")}
	created, err := c.CreateCampaignWithResponse(ctx, once, in)
	check(created, err, http.StatusCreated)
	again, err := c.CreateCampaignWithResponse(ctx, once, in)
	check(again, err, http.StatusCreated)
	equal("createCampaign: Idempotent-Replayed", *again.Headers201.IdempotentReplayed, "true")

	id, etag := created.JSON201.Uuid, &created.Headers201.ETag
	unchanged, err := c.GetCampaignWithResponse(ctx, id, &api.GetCampaignParams{IfNoneMatch: etag})
	check(unchanged, err, http.StatusNotModified)
	for _, status := range []int{http.StatusOK, http.StatusPreconditionFailed} {
		replaced, err := c.ReplaceCampaignWithResponse(ctx, id, &api.ReplaceCampaignParams{IfMatch: etag}, api.CampaignReplacement{Title: "Shapes"})
		check(replaced, err, status)
	}
	list, err := c.ListCampaignsWithResponse(ctx, &api.ListCampaignsParams{Limit: new(1)})
	check(list, err, http.StatusOK)
	equal("listCampaigns: items/0/uuid", list.JSON200.Items[0].Uuid, id)

	invalid, err := c.CreateCampaignWithResponse(ctx, nil, api.CampaignInput{})
	check(invalid, err, http.StatusUnprocessableEntity)
	equal("createCampaign: errors/0/pointer", *(*invalid.ApplicationproblemJSON422.Errors)[0].Pointer, "/title")
	return id
}

// subscribe creates a webhook for all events, and returns those that arrive.
func subscribe(ctx context.Context, c *api.ClientWithResponses) <-chan any {
	arrived := make(chan any, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var event api.Event
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		value, unionErr := event.ValueByDiscriminator()
		if err != nil || unionErr != nil {
			fail("webhook: %v, %v\n%s", err, unionErr, body)
		}
		arrived <- value
	}))
	created, err := c.CreateWebhookWithResponse(ctx, nil, api.WebhookInput{Url: server.URL, Events: []api.EventType{
		api.EventTypeResponseCreated, api.EventTypeResponseStatusChanged, api.EventTypeResponseCompleted,
	}})
	check(created, err, http.StatusCreated)
	return arrived
}

// responses creates a response, completes it, lists it and exports it.
func responses(ctx context.Context, c *api.ClientWithResponses, campaign api.Uuid) api.Response {
	created, err := c.CreateResponseWithResponse(ctx, campaign, nil, api.ResponseInput{
		User: &api.RespondentInput{Email: new("ada@example.com")}, Responses: map[string]api.AnswerInput{"colour": {Value: []string{"red"}}},
	})
	check(created, err, http.StatusCreated)
	r := *created.JSON201
	updated, err := c.UpdateResponseWithResponse(ctx, campaign, r.Uuid, nil, api.ResponsePatch{Status: new("completed")})
	check(updated, err, http.StatusOK)
	equal("updateResponse: status", updated.JSON200.Status, "completed")
	list, err := c.ListResponsesWithResponse(ctx, campaign, nil)
	check(list, err, http.StatusOK)
	equal("listResponses: total", list.JSON200.Total, 1)
	table, err := c.ExportResponsesAsCsvWithResponse(ctx, campaign, nil)
	check(table, err, http.StatusOK)
	equal("exportResponsesAsCsv: the response", strings.Contains(string(table.Body), r.Uuid.String()), true)
	return r
}

// file uploads a file and downloads a part of it.
func file(ctx context.Context, c *api.ClientWithResponses, r api.Response) {
	named := &api.UploadFileParams{ContentDisposition: new(`attachment; filename="list.csv"`)}
	uploaded, err := c.UploadFileWithBodyWithResponse(ctx, r.CampaignUuid, r.Uuid, named, "text/csv", strings.NewReader("one, two\n"))
	check(uploaded, err, http.StatusCreated)
	equal("uploadFile: name", uploaded.JSON201.Name, "list.csv")
	part, err := c.DownloadFileWithResponse(ctx, uploaded.JSON201.Uuid, &api.DownloadFileParams{Range: new("bytes=0-2")})
	check(part, err, http.StatusPartialContent)
	equal("downloadFile: the bytes", string(part.Body), "one")
}
