package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// mailto is how the URL of an endpoint begins that is an address for mail.
const mailto = "mailto:"

// A Mail is a delivery to an endpoint with a mailto: URL. [Options.Mail] makes the mail out of the payload.
type Mail struct {
	ID       string // the delivery's identifier, the same for every attempt
	EventID  string
	Account  string
	Endpoint string // the endpoint's identifier
	To       string // the address in the endpoint's URL; "" if the payload names the recipient
	Again    bool   // whether an attempt was made before
	Replay   bool   // whether it is a manual redelivery
	Body     []byte // the payload; it must not be changed
}

// A MailError says why a mail was not accepted. Other errors of [Options.Mail] are those of a connection: the delivery is retried.
type MailError struct {
	Code  int       // of the server's reply, such as 550 (RFC 5321 §4.2); 0 if it isn't a server's
	Text  string    // of the reply, or the reason; people see it with the delivery
	Final bool      // whether retrying is of no use
	Later time.Time // when the mail may be sent, if it may not now: no attempt is counted
}

// Error returns the code and the text.
func (e *MailError) Error() string {
	if e.Code == 0 {
		return e.Text
	}
	return fmt.Sprintf("%d %s", e.Code, e.Text)
}

// mail sends a mail. Its results are those of exchange.
func (e *Engine) mail(ctx context.Context, j *job, number int) (status int, answer []byte, err error) {
	switch {
	case e.opts.Mail == nil:
		return 0, []byte("This server can't send mail."), unsent(ClassMail)
	case j.missing:
		return 0, nil, unsent(ClassPayload)
	}
	err = e.opts.Mail(ctx, Mail{
		ID: j.claim.ID, EventID: j.claim.EventID, Account: j.endpoint.Account, Endpoint: j.endpoint.ID,
		To: strings.TrimPrefix(j.endpoint.URL, mailto), Again: number > 1, Replay: j.claim.Kind == Replay, Body: j.body,
	})
	if refused, ok := errors.AsType[*MailError](err); ok {
		answer := []byte(refused.Text)
		return refused.Code, answer[:min(len(answer), keepAnswer)], err
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, nil, nil
}
