package formsvc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Person removes an account's data about the person with that e-mail address ([SameEmail]):
//   - the responses of that user, with their files, comments, signatures and events, and the
//     deliveries, attempts and notices of these events;
//   - the person's signatures of other responses;
//   - stored events that name the person as user or signer, although the response is another
//     person's or was deleted;
//   - the replies kept for idempotent retries of calls about all of these, and refusals kept so that
//     name the person.
//
// What others wrote about the person in answers and comments of other responses stays. Records
// submitted during the call may stay; run it again.
//
// The audit trail gets an entry before and one after, without personal data. If Person fails
// midway, it returns what it had removed by then. It fails with a *[ValidationError] for an invalid
// address, and with [ErrNotFound] for an unknown account.
func (e Erasure) Person(ctx context.Context, account ID, email string, opts *ErasureOptions) (Receipt, error) {
	p, err := e.person(ctx, account, email, opts)
	if err != nil {
		return Receipt{}, fmt.Errorf("formsvc: erase: %w", err)
	}
	err = p.audited(ctx, AuditErasureBegun, AuditErasureDone, p.receipt.ID, nil, func() error { return p.erase(ctx) })
	if err != nil {
		return p.receipt, fmt.Errorf("formsvc: erase: %w", err)
	}
	return p.receipt, nil
}

// person checks the input of an erasure or export.
func (e Erasure) person(ctx context.Context, account ID, email string, opts *ErasureOptions) (*person, error) {
	if !validEmail(email) || CheckText(email) != nil {
		var v ValidationError
		v.add("/email", "invalid_email", "must be an e-mail address")
		return nil, &v
	}
	if _, err := e.s.store.Account(ctx, account); err != nil {
		return nil, err
	}
	return &person{eraser: e.work(account, opts), email: email, text: inJSON(email)}, nil
}

// person removes the data of one person.
type person struct {
	*eraser

	email   string
	text    string      // the address as in a JSON string, without the quotes
	counted map[ID]bool // responses of others whose answers a dry run has counted
}

// others calls unit for records that name the person but belong to another person's response.
func (p *person) others(ctx context.Context, e Erasing) error {
	e.AnswersWith = p.text
	if p.opts.DryRun { // the same reply is found with a signature and with its event
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
	if err := p.events(ctx); err != nil {
		return err
	}
	return p.refusals(ctx)
}

// refusals empties stored refusals that contain the person's address: as it is, or escaped in the
// pointer to an invalid field. All of the account's refusals, which are at most a day old, are read
// in one atomic write.
func (p *person) refusals(ctx context.Context) error {
	texts := []string{p.text, inJSON(pointerEscape(p.email))}
	for _, text := range slices.Compact(texts) {
		if err := p.unit(ctx, Erasing{AnswersWith: text, Refusals: true}); err != nil {
			return err
		}
	}
	return nil
}

// responses removes the responses of the person, campaign by campaign. There is no index on
// addresses, since it would slow down every new response.
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

// signatures removes the person's signatures of other people's responses.
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

// events removes the remaining events that name the person.
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

// own reports whether a dry run has counted the response with all that belongs to it. Without a dry
// run such a response is already deleted.
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

// named reports whether a payload names the person as user or signer.
func (p *person) named(payload []byte) bool {
	if !bytes.Contains(foldBytes(payload), []byte(FoldEmail(p.text))) {
		return false // payloads all write an address with the same bytes
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
		return true // written by another program: its structure is unknown
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

// inJSON returns the text as in a JSON string, without the quotes.
func inJSON(s string) string {
	b := appendString(nil, s)
	return string(b[1 : len(b)-1])
}
