package main

import (
	"context"
	"fmt"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/mailer"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// mails returns what sends the mails of deliveries.
func (c *serveCmd) mails(svc *formsvc.Service, m *mailer.Mailer) (func(context.Context, delivery.Mail) error, error) {
	mails, err := digest.NewMailer(svc, m, &digest.MailerOptions{FormsURL: c.BaseURL + formsPath, ConsoleURL: c.BaseURL + consolePath})
	if err != nil {
		return nil, err
	}
	return mails.Mail, nil
}

// failureMail returns the mail about a digest, with the commands for its webhook.
func failureMail(d *formsvc.Digest) (subject, text string) {
	subject, text = digest.Compose(d)
	return subject, text + fmt.Sprintf("\nTo see the attempts:\n\n  formsvc webhooks deliveries %s --state failed --account %s\n\n"+
		"To send them again when the receiver works:\n\n  formsvc webhooks redeliver %s --since %s --account %s\n",
		d.WebhookID, d.AccountID, d.WebhookID, stamp{d.FirstAt}, d.AccountID)
}
