package formsvc_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook"
)

// exampleService returns a service with an account, a fixed clock and numbered references, so that
// the output of the examples is always the same. Programs leave Now and NewReference out.
func exampleService(flow *formsvc.Workflow) (*formsvc.Service, *memory.Store, formsvc.ID) {
	store, n := memory.New(), 0
	svc := must(formsvc.New(store, &formsvc.Options{
		Workflow: flow,
		Now:      func() time.Time { return time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC) },
		NewReference: func() string {
			n++
			return fmt.Sprintf("REF-%d", n)
		},
	}))
	return svc, store, must(svc.Accounts.Create(context.Background(), "example")).ID
}

// Create an account with its first key, and authenticate the key.
func ExampleAccounts_CreateWithKey() {
	ctx := context.Background()
	svc := must(formsvc.New(memory.New(), nil))
	account, key, err := svc.Accounts.CreateWithKey(ctx, "Town hall", formsvc.KeyInput{
		Name: "website", Permissions: []formsvc.Permission{formsvc.ResponsesWrite, formsvc.CampaignsRead},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// key.Value is what clients send. It can't be read again: show it now.
	principal := must(svc.Keys.Authenticate(ctx, key.Value))
	fmt.Println(account.Name, principal.Permissions)
	fmt.Println(principal.AccountID == account.ID, principal.May(formsvc.ResponsesWrite), principal.May(formsvc.FilesRead))

	_, err = svc.Keys.Authenticate(ctx, key.Value[:len(key.Value)-1]+"?")
	fmt.Println(errors.Is(err, formsvc.ErrUnauthenticated))
	// Output:
	// Town hall [campaigns:read responses:write]
	// true true false
	// true
}

// Create a campaign with modules, and a response to it.
func ExampleResponses_Create() {
	ctx := context.Background()
	svc, _, account := exampleService(nil)
	campaign := must(svc.Campaigns.Create(ctx, account, formsvc.CampaignInput{
		Title:    "Summer grant",
		ClosesAt: time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC),
		Modules: []formsvc.Module{
			{Name: "motivation", Label: "Why do you apply?", Required: true, MaxLength: 2000},
			{Name: "days", Type: formsvc.ChoiceModule, Options: []string{"monday", "friday"}, Multiple: true},
			{Name: "amount", Type: formsvc.NumberModule},
		},
	}))
	r := must(svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com", FirstName: "Ada"},
		Answers: []formsvc.Answer{
			{Name: "motivation", Value: []string{"To learn"}},
			{Name: "days", Value: []string{"friday", "monday"}},
		},
	}))
	fmt.Println(r.Reference, r.Status, r.CreatedAt.Format(time.RFC3339))
	fmt.Println(r.Answers.JSON())
	// Output:
	// REF-1 pending 2026-11-21T08:30:00Z
	// {"motivation":{"value":["To learn"]},"days":{"value":["friday","monday"]}}
}

// A refused response lists all invalid fields.
func ExampleValidationError() {
	ctx := context.Background()
	svc, _, account := exampleService(nil)
	campaign := must(svc.Campaigns.Create(ctx, account, formsvc.CampaignInput{
		Title: "Summer grant",
		Modules: []formsvc.Module{
			{Name: "motivation", Required: true}, {Name: "start/end", Type: formsvc.DateModule, Multiple: true},
		},
	}))
	_, err := svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "ada(at)example.com"},
		Answers: []formsvc.Answer{
			{Name: "start/end", Value: []string{"2026-07-01", "2026-06-31"}}, {Name: "colour", Value: []string{"blue"}},
		},
	})
	if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok {
		for _, f := range invalid.Fields {
			fmt.Printf("%s: %s (%s)\n", f.Pointer, f.Detail, f.Code)
		}
	}
	// Output:
	// /user/email: must be an e-mail address (invalid_email)
	// /responses/start~1end/value/1: must be a day as YYYY-MM-DD (invalid_date)
	// /responses/colour: is not a module of this campaign (unknown_module)
	// /responses/motivation: is required (required)
}

// Set a workflow, and patch responses with allowed and refused transitions.
func ExampleResponses_Update() {
	ctx := context.Background()
	svc, _, account := exampleService(&formsvc.Workflow{
		Statuses: []string{"in_review", "accepted", "refused"},
		Transitions: map[string][]string{
			"pending":   {"in_review"},
			"in_review": {"accepted", "refused"},
		},
		Final: []string{"accepted", "refused"},
	})
	campaign := must(svc.Campaigns.Create(ctx, account, formsvc.CampaignInput{Title: "Summer grant"}))
	r := must(svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com"}, Answers: []formsvc.Answer{{Name: "amount", Value: []string{"100"}}},
	}))
	_, err := svc.Responses.Update(ctx, r.Key(), formsvc.ResponsePatch{Status: new("accepted")})
	fmt.Println(errors.Is(err, formsvc.ErrTransition), err)

	r, err = svc.Responses.Update(ctx, r.Key(), formsvc.ResponsePatch{
		Status: new("in_review"), LastName: new("Lovelace"), IfVersion: r.Version,
		Answers: []formsvc.AnswerPatch{
			{Answer: formsvc.Answer{Name: "amount", Value: []string{"120"}}},
			{Answer: formsvc.Answer{Name: "note"}, Remove: true}, // it isn't there: no change
		},
	})
	fmt.Println(r.Status, r.Version, r.User.LastName, r.Answers.JSON(), err)

	r, err = svc.Responses.Update(ctx, r.Key(), formsvc.ResponsePatch{Status: new("accepted")})
	fmt.Println(r.Status, r.CompletedAt.Format(time.RFC3339), err)
	// Output:
	// true formsvc: update response: status "accepted" cannot follow "pending"; allowed: in_review
	// in_review 2 Lovelace {"amount":{"value":["120"]}} <nil>
	// accepted 2026-11-21T08:30:00Z <nil>
}

// Create a webhook. Each event that it listens to has a delivery as soon as the change is stored.
// The engine of package delivery sends deliveries; this example only lists them.
func ExampleWebhooks_Create() {
	ctx := context.Background()
	svc, store, account := exampleService(nil)
	campaign := must(svc.Campaigns.Create(ctx, account, formsvc.CampaignInput{Title: "Summer grant"}))
	hook, _, err := svc.Webhooks.Create(ctx, account, formsvc.WebhookInput{
		URL:        "https://receiver.example/hooks",
		Events:     []formsvc.EventType{webhook.ResponseCreated, webhook.ResponseCompleted},
		CampaignID: campaign.ID, // leave it out for all campaigns
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := must(svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}}))
	must(svc.Responses.Update(ctx, r.Key(), formsvc.ResponsePatch{Status: new("validated")})) // nobody listens to this one

	page := must(svc.Deliveries.List(ctx, formsvc.DeliveryQuery{AccountID: account, WebhookID: hook.ID}))
	for _, d := range page.Items {
		payloads := must(store.Payloads(ctx, []string{string(d.EventID)}))
		event, err := webhook.ParseEvent(payloads[string(d.EventID)].Body)
		fmt.Println(d.State, event.Type, event.Data.Campaign.Title, event.Data.Response.Reference, err)
	}
	// Output:
	// pending response.created Summer grant REF-1 <nil>
}

// Sign the answers of a response. The hash of their canonical form shows later whether they have
// changed. Any language can compute it from the JSON of the API.
func ExampleSignatures_Create() {
	ctx := context.Background()
	svc, _, account := exampleService(nil)
	campaign := must(svc.Campaigns.Create(ctx, account, formsvc.CampaignInput{Title: "Summer grant"}))
	r := must(svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com"},
		Answers: []formsvc.Answer{
			{Name: "days", Value: []string{"Monday", "Friday"}}, {Name: "amount", Value: []string{"100 €"}}, {Name: "remarks"},
		},
	}))
	signature := must(svc.Signatures.Create(ctx, r.Key(),
		formsvc.SignatureInput{Signer: formsvc.User{Email: "grace@example.com"}, Provider: "pen"}))

	// The members sorted, no white space, characters as they are.
	text := `{"amount":{"value":["100 €"]},"days":{"value":["Monday","Friday"]},"remarks":{"value":[]}}`
	fmt.Println(sha256.Sum256([]byte(text)) == signature.DocumentSHA256)
	fmt.Println(string(must(r.Answers.Canonical())) == text)

	changed := formsvc.NewAnswers(formsvc.Answer{Name: "amount", Value: []string{"1000"}})
	fmt.Println(sha256.Sum256(must(changed.Canonical())) == signature.DocumentSHA256)
	// Output:
	// true
	// true
	// false
}

// Upload a file to a response, read it, and delete it with the response.
func ExampleFiles_Upload() {
	ctx := context.Background()
	// memblob forgets; programs open a directory with fileblob or a bucket with s3blob.
	svc := must(formsvc.New(memory.New(), &formsvc.Options{Blobs: memblob.New()}))
	account := must(svc.Accounts.Create(ctx, "example"))
	campaign := must(svc.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "Summer grant"}))
	r := must(svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}}))
	file := must(svc.Files.Upload(ctx, r.Key(), formsvc.FileInput{
		Name: `C:\plans\roof.txt`, ContentType: "text/plain", Content: strings.NewReader("a flat roof"),
	}))
	fmt.Println(file.Name, file.Size, "bytes")

	content := must(svc.Files.Open(ctx, &file, 2, -1))
	text, err := io.ReadAll(content)
	fmt.Println(string(text), errors.Join(err, content.Close()))

	fmt.Println(svc.Responses.Delete(ctx, r.Key(), nil))
	_, err = svc.Files.Get(ctx, formsvc.FileKey{AccountID: account.ID, ID: file.ID})
	fmt.Println(errors.Is(err, formsvc.ErrNotFound))
	// Output:
	// roof.txt 11 bytes
	// flat roof <nil>
	// <nil>
	// true
}

// Make a form from a struct, and read its answers as that struct.
func ExampleDecode() {
	type Registration struct {
		Name    string    `form:"name" label:"Your name"`
		Arrival time.Time `form:"arrival" label:"When do you arrive?"`
		Guests  *int      `form:"guests,min=1,max=4" label:"Whom do you bring?"`
		Tracks  []string  `form:"tracks" options:"Go,SQL,CSS"`
	}
	ctx := context.Background()
	svc, _, account := exampleService(nil)
	modules := must(formsvc.ModulesOf[Registration]())
	campaign := must(svc.Campaigns.Create(ctx, account, formsvc.CampaignInput{Title: "Conference", Modules: modules}))
	response := must(svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com"},
		Answers: []formsvc.Answer{
			{Name: "name", Value: []string{"Ada"}}, {Name: "arrival", Value: []string{"2026-11-21"}}, {Name: "tracks", Value: []string{"SQL", "Go"}},
		},
	}))
	r, err := formsvc.Decode[Registration](response.Answers)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Name, r.Arrival.Weekday(), r.Guests == nil, r.Tracks)
	// Output: Ada Saturday true [SQL Go]
}
