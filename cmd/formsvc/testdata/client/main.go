// Command client uses every operation of a running formsvc, and receives every
// webhook, through code that oapi-codegen generates from the OpenAPI document that
// the service serves:
//
//	curl -o openapi.json $FORMSVC_URL/openapi.json
//	mkdir api && go tool oapi-codegen -config oapi-codegen.yaml openapi.json
//	FORMSVC_URL=http://127.0.0.1:8080 FORMSVC_KEY=formsvc_… FORMSVC_NARROW_KEY=formsvc_… go run .
//
// FORMSVC_KEY has all permissions. FORMSVC_NARROW_KEY has campaigns:read alone, and its quota, which should be small, is
// used up. The service must be new, and serve with --webhook-allow 127.0.0.0/8, --webhook-retries 100ms, --max-upload 100KB
// and a quota.
//
// It prints nothing if every response matches the document, down to the last field and header. Otherwise it names the
// operation and the field, and ends with status 1.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"example.com/client/api"
)

// patience limits the whole run. Only a failing run takes as long.
const patience = 2 * time.Minute

// A driver uses the service.
type driver struct {
	*api.ClientWithResponses                          // with a key with all permissions
	narrow                   *api.ClientWithResponses // may only read campaigns
	stranger                 *api.ClientWithResponses // has no valid key

	receiver *receiver
	used     map[string]bool // the operations that succeeded
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	url := os.Getenv("FORMSVC_URL")
	d := &driver{
		ClientWithResponses: newClient(url, os.Getenv("FORMSVC_KEY")),
		narrow:              newClient(url, os.Getenv("FORMSVC_NARROW_KEY")),
		stranger:            newClient(url, "not a key"),
		receiver:            newReceiver(),
		used:                map[string]bool{},
	}
	d.public(ctx)
	d.account(ctx)
	campaign := d.campaigns(ctx)
	d.subscribe(ctx)
	response := d.responses(ctx, campaign)
	d.exports(ctx, campaign)
	d.comments(ctx, response)
	file := d.files(ctx, response)
	d.signatures(ctx, response, file)
	d.events(ctx)
	d.webhooks(ctx, campaign)
	d.deleteResponse(ctx, response)
	d.problems(ctx, campaign)
	d.complete(ctx)
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

// public uses the operations that need no key.
func (d *driver) public(ctx context.Context) {
	health, err := d.stranger.GetHealthWithResponse(ctx)
	d.check(health, err, http.StatusOK)
	ready, err := d.stranger.GetReadinessWithResponse(ctx)
	d.check(ready, err, http.StatusOK)

	root, err := d.stranger.GetRootWithResponse(ctx, nil)
	d.check(root, err, http.StatusOK)
	equal("getRoot: links", len(root.JSON200.Links), 3)

	page, err := d.stranger.GetDocsWithResponse(ctx, nil)
	d.check(page, err, http.StatusOK)
	equal("getDocs: Content-Type", page.ContentType(), "text/html; charset=utf-8")
	page, err = d.stranger.GetDocsWithResponse(ctx, &api.GetDocsParams{IfNoneMatch: &page.Headers200.ETag})
	d.check(page, err, http.StatusNotModified)
	style, err := d.stranger.GetDocsFileWithResponse(ctx, "docs.css", nil)
	d.check(style, err, http.StatusOK)
	equal("getDocsFile: Content-Type", style.ContentType(), "text/css; charset=utf-8")
	missing, err := d.stranger.GetDocsFileWithResponse(ctx, "missing.css", nil)
	d.check(missing, err, http.StatusNotFound)
}

// account checks the account of the key.
func (d *driver) account(ctx context.Context) {
	me, err := d.GetMeWithResponse(ctx)
	d.check(me, err, http.StatusOK)
	equal("getMe: account.name", me.JSON200.Account.Name, "default")
	equal("getMe: key.name", me.JSON200.Key.Name, "first key")
	equal("getMe: permissions", len(me.JSON200.Permissions), 7)
	equalTo("getMe: X-RateLimit-Limit", me.Headers200.XRateLimitLimit, me.JSON200.Quota.Limit)
	equalTo("getMe: X-RateLimit-Remaining", me.Headers200.XRateLimitRemaining, me.JSON200.Quota.Remaining)

	me, err = d.narrow.GetMeWithResponse(ctx)
	d.check(me, err, http.StatusOK)
	equal("getMe: permissions", fmt.Sprint(me.JSON200.Permissions), fmt.Sprint([]api.Permission{api.PermissionCampaignsRead}))
}

// complete checks that every operation of the document was used.
func (d *driver) complete(ctx context.Context) {
	document, err := d.stranger.GetOpenAPIWithResponse(ctx, nil)
	d.check(document, err, http.StatusOK)
	unchanged, err := d.stranger.GetOpenAPIWithResponse(ctx, &api.GetOpenAPIParams{IfNoneMatch: &document.Headers200.ETag})
	d.check(unchanged, err, http.StatusNotModified)

	count := 0
	for path, item := range document.JSON200.Paths {
		for _, operation := range item.(map[string]any) {
			// Other values have no operationId.
			if operation, ok := operation.(map[string]any); ok && operation["operationId"] != nil {
				count++
				if id := operation["operationId"].(string); !d.used[goName(id)] {
					fail("%s (%s) is in the document and was never used with success", id, path)
				}
			}
		}
	}
	equal("operations used", len(d.used), count)
	for name := range document.JSON200.Webhooks {
		if !d.receiver.got(api.EventType(name)) {
			fail("the webhook %s is in the document and never came", name)
		}
	}
	equal("webhooks in the document", len(document.JSON200.Webhooks), 7)
}
