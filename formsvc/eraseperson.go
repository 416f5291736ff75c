package formsvc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Person removes what an account has of the person with that e-mail address
// ([SameEmail]):
//   - the responses of that user, with their files, comments, signatures and
//     events, and with the deliveries of these, the log of attempts and the notices;
//   - what that person signed in other responses;
//   - events of the last weeks that name the person as user or as signer although
//     their response is somebody else's, or is not there anymore;
//   - the answers kept for calls about all of these that might be repeated.
//
// What others wrote about the person stays, in answers and in comments on other
// responses. What is submitted meanwhile may stay; run it again.
//
// The audit trail has an entry before and one after, without anything personal.
// An erasure that fails returns what it had removed by then.
// It fails with a *[ValidationError] for what is no address, and with
// [ErrNotFound] for an unknown account.
func (e Erasure) Person(ctx context.Context, account ID, email string, opts *ErasureOptions) (_ Receipt, err error) {
	defer e.s.span(&ctx, "Erasure.Person").end(&err)
	if !validEmail(email) || CheckText(email) != nil {
		var v ValidationError
		v.add("/email", "invalid_email", "must be an e-mail address")
		return Receipt{}, fmt.Errorf("formsvc: erase: %w", &v)
	}
	if _, err := e.s.store.Account(ctx, account); err != nil {
		return Receipt{}, fmt.Errorf("formsvc: erase: %w", err)
	}
	w := e.work(account, opts)
	p := &person{eraser: w, email: email, text: inJSON(email)}
	err = w.audited(ctx, AuditErasureBegun, AuditErasureDone, w.receipt.ID, nil, func() error { return p.erase(ctx) })
	if err != nil {
		return w.receipt, fmt.Errorf("formsvc: erase: %w", err)
	}
	return w.receipt, nil
}

// person removes the data of one person.
type person struct {
	*eraser

	email   string
	text    string      // the address as JSON has it, between the quotes
	counted map[ID]bool // responses of others whose answers a dry run has counted
}

// others is unit for what names the person although it is about a response of
// somebody else.
func (p *person) others(ctx context.Context, e Erasing) error {
	e.AnswersWith = p.text
	if p.opts.DryRun { // the same answer is found with a signature and with its event
		if p.counted == nil {
			p.counted = make(map[ID]bool)
		}
		e.AnswersOf = slices.DeleteFunc(e.AnswersOf, func(id ID) bool {
			again := p.counted[id]
			p.counted[id] = true
			return again
		})
	}
	return p.unit(ctx, e)
}

func (p *person) erase(ctx context.Context) error {
	if err := p.dropLeftovers(ctx); err != nil {
		return err
	}
	if err := p.responses(ctx); err != nil {
		return err
	}
	if err := p.signatures(ctx); err != nil {
		return err
	}
	return p.events(ctx)
}

// responses removes the responses of the person, campaign by campaign. There is no
// index on addresses: it would cost every new response.
func (p *person) responses(ctx context.Context) error {
	q := CampaignQuery{AccountID: p.receipt.AccountID, Page: PageQuery{Limit: eraseUnit, Ascending: true}}
	for {
		page, err := p.store.Campaigns(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			key := CampaignKey{AccountID: q.AccountID, ID: page.Items[i].ID}
			if err := p.found(ctx, key, ResponseFilter{Email: p.email, AnyCase: true}); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		q.Page.After = page.Items[len(page.Items)-1].ID
	}
}

// signatures removes what the person signed in responses of others.
func (p *person) signatures(ctx context.Context) error {
	q := SignatureQuery{AccountID: p.receipt.AccountID, Email: p.email, Page: PageQuery{Limit: eraseUnit, Ascending: true}}
	for {
		page, err := p.store.Signatures(ctx, q)
		if err != nil {
			return err
		}
		var e Erasing
		for i := range page.Items {
			sig := &page.Items[i]
			own, err := p.own(ctx, ResponseKey{AccountID: sig.AccountID, CampaignID: sig.CampaignID, ID: sig.ResponseID})
			if err != nil {
				return err
			}
			if !own {
				e.Signatures = append(e.Signatures, sig.ID)
				e.AnswersOf = append(e.AnswersOf, sig.ResponseID)
			}
		}
		if err := p.others(ctx, e); err != nil {
			return err
		}
		if !page.More || len(page.Items) == 0 {
			return nil
		}
		q.Page.After = page.Items[len(page.Items)-1].ID
	}
}

// events removes the events that are left and name the person.
func (p *person) events(ctx context.Context) error {
	q := EventQuery{AccountID: p.receipt.AccountID, Limit: MaxLimit, Early: true}.Clamped()
	for {
		page, err := p.store.Events(ctx, q)
		if err != nil {
			return err
		}
		var e Erasing
		for i := range page.Items {
			event := &page.Items[i]
			if !p.named(event.Payload) {
				continue
			}
			own, err := p.own(ctx, ResponseKey{AccountID: event.AccountID, CampaignID: event.CampaignID, ID: event.ResponseID})
			if err != nil {
				return err
			}
			if own {
				continue
			}
			e.Events = append(e.Events, event.ID)
			e.AnswersOf = append(e.AnswersOf, event.ResponseID)
			if len(e.Events) == eraseUnit {
				if err := p.others(ctx, e); err != nil {
					return err
				}
				e.Events, e.AnswersOf = nil, nil
			}
		}
		if err := p.others(ctx, e); err != nil {
			return err
		}
		if !page.More {
			return nil
		}
		q.After = page.Next
	}
}

// own reports whether a dry run has counted the response, with all that belongs to
// it. Otherwise it is gone by now.
func (p *person) own(ctx context.Context, key ResponseKey) (bool, error) {
	if !p.opts.DryRun {
		return false, nil
	}
	r, err := p.store.Response(ctx, key)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	return SameEmail(r.User.Email, p.email), nil
}

// named reports whether a payload has the person as user or as signer.
func (p *person) named(payload []byte) bool {
	if !bytes.Contains(foldBytes(payload), []byte(FoldEmail(p.text))) {
		return false // the same bytes, since every payload is written the same way
	}
	type user struct {
		User   struct{ Email string } `json:"user"`
		Signer struct{ Email string } `json:"signer"`
	}
	var v struct {
		Data struct {
			Response  user `json:"response"`
			Signature user `json:"signature"`
		} `json:"data"`
	}
	if err := json.Unmarshal(payload, &v); err != nil {
		return true // of another program: nobody can tell where it has the address
	}
	return SameEmail(v.Data.Response.User.Email, p.email) || SameEmail(v.Data.Signature.Signer.Email, p.email)
}

// foldBytes returns a copy with ASCII letters in lower case.
func foldBytes(b []byte) []byte {
	folded := make([]byte, len(b))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		folded[i] = c
	}
	return folded
}

// inJSON returns the text as it is inside a JSON string.
func inJSON(s string) string {
	b := appendString(nil, s)
	return string(b[1 : len(b)-1])
}
