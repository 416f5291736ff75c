package formsvc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// eve is the address of the person who is erased in these tests.
const eve = "eve@example.com"

// A guestbook is a service with data of eve and others.
type guestbook struct {
	*fileWorld

	campaigns []formsvc.Campaign
	others    []formsvc.Response // must stay
	want      counts             // that an erasure removes
}

type counts struct{ responses, files, signatures, events int }

func countsOf(r *formsvc.Receipt) counts { return counts{r.Responses, r.Files, r.Signatures, r.Events} }

// newGuestbook fills a service: eve submitted to two campaigns, signed a response
// of another person, and was the user of a third one for a while. There are a
// receiver of all and one of signatures, and attempts at the first events failed.
func newGuestbook(t *testing.T) *guestbook {
	t.Helper()
	g := &guestbook{fileWorld: newFileWorld(t)}
	g.hook("https://example.com/all", webhook.EventTypes()...)
	g.hook("https://example.com/signed", webhook.SignatureCompleted)
	g.campaigns = []formsvc.Campaign{g.campaign(), g.campaign()}
	g.others = append(g.others, g.response)

	for i, email := range []string{eve, "EVE@Example.com", "eve@EXAMPLE.com"} {
		r := g.by(&g.campaigns[i%2], email)
		g.attach(&r)
		if i == 0 {
			if n := len(g.finish(delivery.Failed)); n != 4 { // three to the receiver of all, one to that of signatures
				t.Fatalf("%d deliveries failed", n)
			}
		}
	}
	// Three responses, each with a file, a comment and a signature, and two with 3 events; a signature with its
	// event; and the event of the creation of a response that was eve's then.
	g.want = counts{responses: 3, files: 3, signatures: 1, events: 6 + 1 + 1}

	signed := g.by(&g.campaigns[0], "bob@example.com")
	g.sign(&signed, "Eve@example.com")
	g.sign(&g.others[0], "bob@example.com")

	former := g.by(&g.campaigns[1], eve)
	bob := "bob@example.com"
	former = g.updated(&former, formsvc.ResponsePatch{Email: &bob})
	g.others = append(g.others, signed, former, g.submitted(&g.campaigns[0], answer("about", "I was told by "+eve)))
	return g
}

func (g *guestbook) hook(url string, events ...formsvc.EventType) {
	g.tb.Helper()
	if _, _, err := g.svc.Webhooks.Create(g.ctx, g.account, formsvc.WebhookInput{URL: url, Events: events}); err != nil {
		g.tb.Fatal(err)
	}
}

func (g *guestbook) by(c *formsvc.Campaign, email string) formsvc.Response {
	g.tb.Helper()
	key := fmt.Sprintf("r%d", g.store.count("CreateResponse"))
	in := formsvc.ResponseInput{User: formsvc.User{Email: email}}
	if strings.HasSuffix(email, "@EXAMPLE.com") {
		in.Held = formsvc.HeldTrap
	}
	return must(keyed(g.svc, &formsvc.Idempotency{Key: key}).Responses.Create(g.ctx, c.Key(), in))
}

// attach adds a file, a comment and a signature of another person.
func (g *guestbook) attach(r *formsvc.Response) {
	g.tb.Helper()
	_, err := g.svc.Files.Upload(g.ctx, r.Key(), formsvc.FileInput{Name: "a", Content: strings.NewReader("from " + r.User.Email)})
	if err == nil {
		_, err = g.svc.Comments.Create(g.ctx, r.Key(), formsvc.CommentInput{Body: "of " + r.User.Email})
	}
	if err == nil {
		_, err = g.svc.Signatures.Create(g.ctx, r.Key(), formsvc.SignatureInput{Signer: ada()})
	}
	noError(g.tb, err)
}

func (g *guestbook) sign(r *formsvc.Response, email string) {
	g.tb.Helper()
	svc := keyed(g.svc, &formsvc.Idempotency{Key: "signed-by-" + email[:3]})
	must(svc.Signatures.Create(g.ctx, r.Key(), formsvc.SignatureInput{Signer: formsvc.User{Email: email}}))
}

// traces returns all data of the store as text, without the answers of others.
func (g *guestbook) traces(svc *formsvc.Service) string {
	g.tb.Helper()
	var b bytes.Buffer
	list := func(v any, err error) {
		noError(g.tb, err)
		fmt.Fprintf(&b, "%+v\n", v)
	}
	campaigns, err := svc.Campaigns.List(g.ctx, formsvc.CampaignQuery{AccountID: g.account})
	list(campaigns, err)
	for _, c := range campaigns.Items {
		page, err := svc.Responses.List(g.ctx, formsvc.ResponseQuery{AccountID: g.account, CampaignID: c.ID})
		list(len(page.Items), err)
		for _, r := range page.Items {
			list(r.User, nil)
			signatures, err := svc.Signatures.List(g.ctx, r.Key(), formsvc.PageQuery{})
			list(signatures, err)
		}
	}
	events, err := svc.Events.List(g.ctx, formsvc.EventQuery{AccountID: g.account, Limit: 1000})
	list(len(events.Items), err)
	for _, e := range events.Items {
		if !bytes.Contains(e.Payload, []byte("I was told by")) {
			list(string(e.Payload), nil)
		}
	}
	hooks, err := svc.Webhooks.List(g.ctx, g.account)
	list(len(hooks), err)
	for _, h := range hooks {
		deliveries, err := svc.Deliveries.List(g.ctx, formsvc.DeliveryQuery{AccountID: g.account, WebhookID: h.ID})
		for _, d := range deliveries.Items {
			for _, a := range d.Log {
				list(string(a.Answer), err)
			}
		}
	}
	for _, key := range []string{"r1", "r2", "r3", "r4", "r5", "signed-by-Eve", "signed-by-bob"} {
		record, err := g.store.Recall(g.ctx, g.account, key, time.Time{})
		list(string(record.Result), err)
	}
	trail, err := svc.Audits.List(g.ctx, formsvc.AuditQuery{AccountID: g.account})
	list(trail, err)
	return strings.ToLower(b.String())
}

// gone fails the test if any data names eve, or if data of others is missing.
func (g *guestbook) gone() {
	g.tb.Helper()
	svc := g.neighbour()
	if text := g.traces(svc); strings.Contains(text, eve) {
		at := strings.Index(text, eve)
		g.tb.Errorf("something is left: …%s", text[max(0, at-300):at+len(eve)])
	}
	for i := range g.others {
		if _, err := svc.Responses.Get(g.ctx, g.others[i].Key()); err != nil {
			g.tb.Errorf("a response of another person: %v", err)
		}
	}
	if record, err := g.store.Recall(g.ctx, g.account, "signed-by-bob", time.Time{}); err != nil || len(record.Result) == 0 {
		g.tb.Errorf("the result of another call is %+v, %v", record, err)
	}
}

func (g *guestbook) erase() formsvc.Receipt {
	return must(g.svc.As(formsvc.Actor{Name: "tester"}).Accounts.ErasePerson(g.ctx, g.account, "eVe@example.com"))
}
