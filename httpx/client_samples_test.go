package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/client"
	"github.com/formsvc/toolkit/webhook"
)

// The client has every operation but the pages for people, and each request and reply fits the OpenAPI document. Code between
// "sample" and "end" is shown on the documentation page.
func TestClientSamples(t *testing.T) {
	w := newWorld(t, nil)
	var mu sync.Mutex
	called := map[string]bool{}
	server := httptest.NewServer(w.checked(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w.bare.ServeHTTP(to, r)
		mu.Lock()
		defer mu.Unlock()
		called[r.Pattern] = true
	}), false))
	defer server.Close()
	api := must(client.New(server.URL, w.mine.key, nil))
	s := samples{w: w, api: api}
	for _, step := range []func(context.Context) error{s.campaigns, s.responses, s.lists, s.files, s.notes, s.webhooks, s.deliveries, s.ends} {
		noError(t, step(t.Context()))
	}
	equal(t, s.response.Answers.JSON(), `{"amount":{"value":["100 < 200"]},"days":{"value":["monday","friday"]}}`, "the response has %s")
	for _, r := range httpx.Routes() {
		if page := slices.Contains([]string{"getRoot", "getHealth", "getOpenAPI", "getDocs", "getDocsFile"}, r.Name); called[r.Method+" "+r.Pattern] == page {
			t.Errorf("%s: called %t", r.Name, page)
		}
	}
}

// samples are the operations in an order in which they work.
type samples struct {
	w        *world
	api      *client.Client
	campaign client.Campaign
	response client.Response
	file     webhook.File
	webhook  client.Webhook
}

func (s *samples) campaigns(ctx context.Context) error {
	api := s.api
	// sample createCampaign
	campaign, err := api.Campaigns.Create(ctx, client.CampaignInput{
		Title: "Travel grants 2027",
		Modules: []formsvc.Module{
			{Name: "amount", Label: "How much do you need?", Type: formsvc.TextModule, Required: true},
			{Name: "days", Label: "On which days?", Type: formsvc.ChoiceModule, Options: []string{"monday", "friday"}, Multiple: true},
			{Name: "plan", Label: "Your plan", Type: formsvc.FileModule, ShowIf: &formsvc.Condition{Module: "days", Equals: []string{"monday"}}},
		},
		RequireEmail: new(false),
		Form:         client.Form{Form: formsvc.Form{Enabled: true}},
	})
	// end
	if err != nil {
		return err
	}
	// sample getCampaign
	campaign, err = api.Campaigns.Get(ctx, campaign.UUID)
	// end
	if err != nil {
		return err
	}
	// sample replaceCampaign
	campaign.ClosesAt = time.Date(2027, 1, 31, 23, 59, 59, 0, time.UTC)
	campaign, err = api.Campaigns.Replace(ctx, campaign.UUID, campaign.CampaignInput, client.IfMatch(campaign.ETag))
	// end
	if err != nil {
		return err
	}
	// sample rotateForm
	campaign, err = api.Campaigns.RotateForm(ctx, campaign.UUID)
	// end
	if s.campaign = campaign; err != nil {
		return err
	}
	// sample listCampaigns
	for campaign, err := range api.Campaigns.All(ctx, &client.CampaignQuery{Search: "travel"}) {
		if err != nil {
			return err
		}
		fmt.Println(campaign.UUID, campaign.Title, campaign.ResponseCount)
	}
	// end
	if _, err = api.Campaigns.List(ctx, nil); err != nil {
		return err
	}
	another, err := api.Campaigns.Create(ctx, campaign.CampaignInput)
	if err != nil || another.Form.Token == campaign.Form.Token || !slices.EqualFunc(another.Modules, campaign.Modules, func(a, b formsvc.Module) bool { return a.Name == b.Name }) {
		return fmt.Errorf("%w, %+v", err, another)
	}
	return api.Campaigns.Delete(ctx, another.UUID, client.IfMatch(another.ETag))
}

func (s *samples) responses(ctx context.Context) error {
	api, campaign := s.api, s.campaign
	// sample createResponse
	response, err := api.Responses.Create(ctx, campaign.UUID, client.ResponseInput{
		User: formsvc.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"},
		Answers: formsvc.NewAnswers(
			formsvc.Answer{Name: "amount", Value: []string{"100 < 200"}},
			formsvc.Answer{Name: "days", Value: []string{"monday", "friday"}},
		),
	})
	// end
	if err != nil {
		return err
	}
	// sample getResponse
	response, err = api.Responses.Get(ctx, campaign.UUID, response.UUID)
	// end
	if s.response = response; err != nil {
		return err
	}
	// sample updateResponse
	response, err = api.Responses.Update(ctx, campaign.UUID, response.UUID, client.ResponsePatch{
		Status: "completed",
	}, client.IfMatch(response.ETag))
	// end
	if err != nil {
		return err
	}
	_, err = api.Responses.Update(ctx, campaign.UUID, response.UUID, client.ResponsePatch{
		User: client.UserPatch{FirstName: new("Augusta")}, Answers: map[string]*webhook.Answer{"days": nil, "amount": {Value: []string{"5"}}},
		Metadata: map[string]*string{"crm": new("4711"), "other": nil},
	})
	return err
}

func (s *samples) lists(ctx context.Context) error {
	api, campaign := s.api, s.campaign
	// sample listResponses
	query := client.ResponseQuery{ResponseFilter: client.ResponseFilter{Status: []string{"completed"}}}
	for response, err := range api.Responses.All(ctx, campaign.UUID, &query) {
		if err != nil {
			return err
		}
		amount, _ := response.Answers.Get("amount")
		fmt.Println(response.Reference, response.User.Email, amount)
	}
	// end
	// sample exportResponsesAsCsv
	table, err := api.Responses.Export(ctx, campaign.UUID, client.CSV, nil)
	if err != nil {
		return err
	}
	defer table.Close()
	_, err = io.Copy(os.Stdout, table)
	// end
	if err != nil {
		return err
	}
	// sample exportResponsesAsXlsx
	workbook, err := api.Responses.Export(ctx, campaign.UUID, client.XLSX, nil)
	if err != nil {
		return err
	}
	defer workbook.Close()
	_, err = io.Copy(io.Discard, workbook) // or to a file
	// end
	if err != nil {
		return err
	}
	// sample exportResponsesAsZip
	archive, err := api.Responses.Export(ctx, campaign.UUID, client.ZIP, &client.ExportQuery{Ascending: true})
	if err != nil {
		return err
	}
	defer archive.Close()
	_, err = io.Copy(io.Discard, archive) // or to a file
	// end
	if err != nil {
		return err
	}
	// sample exportResponsesAsNdjson
	lines, err := api.Responses.Export(ctx, campaign.UUID, client.NDJSON, &client.ExportQuery{Search: "augusta", Ascending: true})
	if err != nil {
		return err
	}
	defer lines.Close()
	_, err = io.Copy(os.Stdout, lines)
	// end
	if err != nil {
		return err
	}
	_, err = api.Responses.List(ctx, campaign.UUID, &client.ResponseQuery{
		PageQuery: client.PageQuery{Limit: 1, Offset: 1, Ascending: true},
		ResponseFilter: client.ResponseFilter{
			Email: "a@example.com", Reference: "A", CreatedAfter: s.w.now, CreatedBefore: s.w.now, UpdatedAfter: s.w.now,
			Metadata: map[string]string{"crm": "4711"},
		},
	})
	return err
}

func (s *samples) files(ctx context.Context) error {
	api, campaign, response := s.api, s.campaign, s.response
	// sample uploadFile
	file, err := api.Files.Upload(ctx, campaign.UUID, response.UUID, client.Upload{
		Name: "plan.txt", ContentType: "text/plain", Content: strings.NewReader("Take the night train."),
	})
	// end
	if s.file = file; err != nil {
		return err
	}
	// sample listFiles
	for file, err := range api.Files.All(ctx, campaign.UUID, response.UUID, nil) {
		if err != nil {
			return err
		}
		fmt.Println(file.UUID, file.Name, file.Size)
	}
	// end
	// sample downloadFile
	content, err := api.Files.Download(ctx, file.UUID)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(os.Stdout, content)
	// end
	return err
}

func (s *samples) notes(ctx context.Context) error {
	api, campaign, response, file := s.api, s.campaign, s.response, s.file
	// sample createComment
	comment, err := api.Comments.Create(ctx, campaign.UUID, response.UUID, "The plan is fine.")
	// end
	if err != nil {
		return err
	}
	fmt.Println(comment.Author)
	// sample listComments
	for comment, err := range api.Comments.All(ctx, campaign.UUID, response.UUID, nil) {
		if err != nil {
			return err
		}
		fmt.Println(comment.Author, comment.Body)
	}
	// end
	// sample createSignature
	signature, err := api.Signatures.Create(ctx, campaign.UUID, response.UUID, client.SignatureInput{
		Signer: formsvc.User{Email: "ada@example.com"}, FileUUID: file.UUID, Provider: "Example Sign",
	})
	// end
	if err != nil {
		return err
	}
	fmt.Println(signature.DocumentSHA256)
	// sample listSignatures
	for signature, err := range api.Signatures.All(ctx, campaign.UUID, response.UUID, nil) {
		if err != nil {
			return err
		}
		fmt.Println(signature.Signer.Email, signature.SignedAt)
	}
	// end
	return nil
}

func (s *samples) webhooks(ctx context.Context) error {
	api := s.api
	// sample createWebhook
	hook, err := api.Webhooks.Create(ctx, client.WebhookInput{
		URL: "https://example.com/hooks", Events: []formsvc.EventType{webhook.ResponseCreated, webhook.ResponseCompleted},
	})
	// end
	if err != nil {
		return err
	}
	// sample getWebhook
	hook, err = api.Webhooks.Get(ctx, hook.UUID)
	// end
	if err != nil {
		return err
	}
	// sample replaceWebhook
	hook.Events = append(hook.Events, webhook.FileUploaded)
	hook, err = api.Webhooks.Replace(ctx, hook.UUID, hook.WebhookInput, client.IfMatch(hook.ETag))
	// end
	if err != nil {
		return err
	}
	// sample rotateWebhook
	hook, err = api.Webhooks.Rotate(ctx, hook.UUID, client.Rotation{})
	// end
	if s.webhook = hook; err != nil || hook.Secret == "" || hook.PreviousSecretExpiresAt.IsZero() {
		return fmt.Errorf("%w, %+v", err, hook)
	}
	// sample listWebhooks
	for hook, err := range api.Webhooks.All(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Println(hook.UUID, hook.URL, hook.Events)
	}
	// end
	return nil
}

func (s *samples) deliveries(ctx context.Context) error {
	api, hook := s.api, s.webhook
	// sample testWebhook
	delivery, err := api.Webhooks.Test(ctx, hook.UUID)
	// end
	if err != nil {
		return err
	}
	s.w.fail()
	// sample getDelivery
	delivery, err = api.Deliveries.Get(ctx, delivery.UUID)
	// end
	if err != nil || !delivery.Test || len(delivery.Attempts) != 1 || delivery.Attempts[0].Answer != "later" {
		return fmt.Errorf("%w, %+v", err, delivery)
	}
	// sample listDeliveries
	for delivery, err := range api.Deliveries.All(ctx, hook.UUID, &client.DeliveryQuery{State: formsvc.DeliveryFailed}) {
		if err != nil {
			return err
		}
		fmt.Println(delivery.UUID, delivery.Event, delivery.AttemptCount)
	}
	// end
	// sample redeliver
	delivery, err = api.Deliveries.Redeliver(ctx, delivery.UUID)
	// end
	if err != nil {
		return err
	}
	if _, err = api.Responses.Create(ctx, s.campaign.UUID, client.ResponseInput{
		Answers: formsvc.NewAnswers(formsvc.Answer{Name: "amount", Value: []string{"1"}}),
	}); err != nil {
		return err
	}
	s.w.fail()
	s.w.now = s.w.now.Add(time.Minute) // its attempt has ended
	// sample redeliverFailed
	since := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	n, err := api.Webhooks.Redeliver(ctx, hook.UUID, since)
	// end
	if err != nil || n != 2 {
		return fmt.Errorf("%w, %d", err, n)
	}
	return nil
}

func (s *samples) ends(ctx context.Context) error {
	api, hook, campaign, response := s.api, s.webhook, s.campaign, s.response
	// sample listEvents
	page, err := api.Events.List(ctx, "", &client.EventQuery{Types: []formsvc.EventType{webhook.ResponseCreated}})
	// end
	if err != nil || len(page.Items) != 2 || page.Next == "" {
		return fmt.Errorf("%w, %+v", err, page)
	}
	// sample getMe
	me, err := api.Me(ctx)
	// end
	if err != nil || me.Account.Name != "mine" || me.Key.Name != "mine key" || len(me.Permissions) == 0 {
		return fmt.Errorf("%w, %+v", err, me)
	}
	// sample deleteWebhook
	err = api.Webhooks.Delete(ctx, hook.UUID)
	// end
	if err != nil {
		return err
	}
	// sample deleteResponse
	err = api.Responses.Delete(ctx, campaign.UUID, response.UUID)
	// end
	if err != nil {
		return err
	}
	for response, err := range api.Responses.All(ctx, campaign.UUID, nil) {
		if err = errors.Join(err, api.Responses.Delete(ctx, campaign.UUID, response.UUID, client.IfMatch("*"))); err != nil {
			return err
		}
	}
	// sample deleteCampaign
	err = api.Campaigns.Delete(ctx, campaign.UUID)
	// end
	if err != nil {
		return err
	}
	_, err = api.Ready(ctx)
	return err
}
